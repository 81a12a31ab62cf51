"""Pages of retry policies: what each does in words and numbers, the editor, the guarded removal."""

from __future__ import annotations

import pytest

from jobs.services.schedules import create_schedule
from orgs.models import AuditEntry
from queues.backoff import RetryRule
from queues.models import RetryPolicy
from queues.web.policy_words import plan_of
from tests.factories import make_project, make_queue
from tests.web.forms import sent_by, token_of
from tests.web.test_pages import HOSTILE

BUDGET = 12
FIELDS = {
    "name": "gentle", "strategy": "linear", "max_attempts": "4", "base_delay_s": "1.5", "multiplier": "",
    "max_delay_s": "60", "jitter": "on",
}  # fmt: skip


@pytest.fixture
def gentle(project):
    return RetryPolicy.objects.create(project=project, name="gentle", base_delay_ms=30_000, max_attempts=8)


def read(client, path):
    return client.get(path).content.decode()


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (RetryRule(max_attempts=1), "Never tries again: the first failure is final"),
        (
            RetryRule(),
            "Waits 1 s, then 2 times as long with each retry, spread by ±50 %; gives up after 5 attempts, about 15 s"
            " in all",
        ),
        (
            RetryRule("fixed", 60_000, max_attempts=1_000, jitter=0),
            "Waits 1 m before each retry; gives up after 1,000 attempts, about 16 h 39 m in all",
        ),
        (
            RetryRule("linear", 10_000, max_delay_ms=60_000, max_attempts=20, jitter=0),
            "Waits 10 s, and 10 s more with each retry, 1 m at most; gives up after 20 attempts, about 16 m 30 s in"
            " all",
        ),
        (
            RetryRule("exponential", 1_000, 100.0, 5_000, 3, 0),
            "Waits 1 s, then 100 times as long with each retry, 5 s at most; gives up after 3 attempts, about 6 s in"
            " all",
        ),
    ],
)
def test_a_sentence_says_what_a_rule_does(rule, sentence):
    assert plan_of(rule).sentence == sentence


def test_each_retry_is_counted_out():
    plan = plan_of(RetryRule("exponential", 1_000, 2.0, 3_000, 20))

    assert [step.wait_s for step in plan.steps[:4]] == [1, 2, 3, 3]
    assert [step.since_s for step in plan.steps[:4]] == [1, 3, 6, 9]
    assert (plan.steps[1].least_s, plan.steps[1].most_s) == (1, 3)
    assert len(plan.steps) + plan.n_more == 19
    assert plan.total_s == 1 + 2 + 17 * 3


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (RetryRule(base_delay_ms=0), "tries again at once"),
        (RetryRule(jitter=0), "come back together"),
        (RetryRule(base_delay_ms=9_000, max_delay_ms=1_000), "shorter than the first one"),
    ],
)
def test_what_may_hurt_is_said(rule, words):
    assert words in " ".join(plan_of(rule).warnings)
    assert not plan_of(RetryRule()).warnings


def test_the_pages_stay_in_their_budget(signed_in, home, project, queue, gentle, django_assert_max_num_queries):
    for number in range(30):
        policy = RetryPolicy.objects.create(project=project, name=f"p{number}")
        make_queue(project, default_retry_policy=policy)
    client = signed_in("owner")
    for path in ("", "/new", f"/{policy.pk}", f"/{policy.pk}/edit"):
        with django_assert_max_num_queries(BUDGET):
            assert client.get(f"{home}retry-policies{path}").status_code == 200


def test_the_list_tells_who_uses_it(signed_in, home, project, queue, gentle):
    client, path = signed_in("viewer"), f"{home}retry-policies"
    assert "nothing now" in read(client, path)
    make_queue(project, default_retry_policy=gentle)
    create_schedule(queue, name="n", cron_expression="0 3 * * *", job_type="noop", retry_policy_id=gentle.pk)
    html = read(client, path)
    assert "1 queue, 1 schedule" in html
    assert "New policy" not in html
    assert "/edit" not in read(client, f"{path}/{gentle.pk}")
    assert "name contains" in read(client, f"{path}?q=zzz")
    elsewhere = make_project(project.organization)
    assert "There are no retry policies yet" in read(
        client, f"/p/{project.organization.slug}/{elsewhere.slug}/retry-policies"
    )


def test_the_preview_follows_what_is_typed(signed_in, home, queue):
    client, path = signed_in("viewer"), f"{home}retry-policies/preview"
    assert "1.5 s more with each retry" in client.post(path, FIELDS).content.decode()
    assert "Not all of it can be read yet" in client.post(path, {**FIELDS, "base_delay_s": "x"}).content.decode()
    assert "Never tries again" in client.post(path, {**FIELDS, "name": "", "max_attempts": "1"}).content.decode()


def test_a_policy_is_made_and_changed(signed_in, home, project, queue, manager):
    client, path = signed_in("manager"), f"{home}retry-policies"
    made = client.post(f"{path}/new", FIELDS)
    policy = RetryPolicy.objects.get()
    assert made.url == f"{path}/{policy.pk}"
    assert (policy.base_delay_ms, policy.max_delay_ms, policy.multiplier, policy.jitter) == (1_500, 60_000, 2.0, True)
    edit = f"{path}/{policy.pk}/edit"
    sent = sent_by(client, edit, max_attempts="9", jitter="")
    sent.pop("jitter")
    assert client.post(edit, sent).status_code == 302
    policy.refresh_from_db()
    assert (policy.max_attempts, policy.jitter, policy.base_delay_ms) == (9, False, 1_500)
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == [
        "retry_policy.create",
        "retry_policy.update",
    ]
    # What was on the page is older than the change: it is not overwritten.
    late = client.post(edit, sent)
    assert late.status_code == 409
    assert "Somebody changed this policy" in late.content.decode()
    assert 'value="9"' in late.content.decode()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"name": ""}, "This field is required"),
        ({"name": "taken"}, "is the name of another policy"),
        ({"name": "a/b"}, "name"),
        ({"name": "nul\x00"}, "Null characters"),
        ({"max_attempts": "0"}, "greater than or equal to 1"),
        ({"multiplier": "nan"}, "Enter a number"),
        ({"multiplier": "101"}, "less than or equal to 100"),
        ({"base_delay_s": "1e99"}, "less than or equal to"),
        ({"base_delay_s": "0.0001"}, "3 decimal places"),
        ({"strategy": "random"}, "not one of the available choices"),
    ],
)
def test_what_can_not_be_is_refused_beside_its_field(signed_in, home, project, queue, changed, complaint):
    RetryPolicy.objects.create(project=project, name="taken")
    answer = signed_in("owner").post(f"{home}retry-policies/new", {**FIELDS, **changed})

    assert answer.status_code == 422
    assert complaint in answer.content.decode()
    assert RetryPolicy.objects.count() == 1


def test_a_policy_in_use_stays_and_a_free_one_goes(signed_in, home, project, queue, gentle):
    user = make_queue(project, default_retry_policy=gentle)
    client, path = signed_in("manager"), f"{home}retry-policies/{gentle.pk}"
    token = token_of(client.post(f"{path}/delete"))
    wrong = client.post(f"{path}/delete", {"confirm_token": token, "typed": "other"})
    assert wrong.status_code == 422
    kept = client.post(f"{path}/delete", {"confirm_token": token, "typed": "gentle"}, follow=True)
    assert "A queue uses this policy" in kept.content.decode()
    user.default_retry_policy = None
    user.save()
    gone = client.post(f"{path}/delete", {"confirm_token": token, "typed": "gentle"})
    assert gone.url == f"{home}retry-policies"
    assert not RetryPolicy.objects.exists()
    assert client.post(f"{path}/delete").status_code == 404


def test_those_of_other_projects_do_not_exist_here(signed_in, home, organization, queue):
    sister = RetryPolicy.objects.create(project=make_project(organization), name="theirs")
    client = signed_in("owner")

    for path in ("", "/edit"):
        assert client.get(f"{home}retry-policies/{sister.pk}{path}").status_code == 404
    assert client.post(f"{home}retry-policies/{sister.pk}/delete").status_code == 404
    assert "theirs" not in read(client, f"{home}retry-policies")


def test_hostile_names_are_text(signed_in, home, project, queue):
    one = RetryPolicy.objects.create(project=project, name=HOSTILE[:100])
    client = signed_in("owner")
    for path in ("", f"/{one.pk}", f"/{one.pk}/edit"):
        html = read(client, f"{home}retry-policies{path}")
        assert "<svg onload" not in html
