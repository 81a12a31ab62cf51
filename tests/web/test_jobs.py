"""The pages of jobs: list, one job, a new one; everything works without a script."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from jobs.decisions import Failed, Succeeded
from jobs.models import Job, JobLog, Operation
from jobs.services.operation_steps import run_step, unended_ids
from orgs.models import AuditEntry
from tests.factories import claim_one, end, job_in, make_job, make_project, make_queue, reload, status_of
from tests.personas import make_user

HOSTILE = "<svg onload=alert(1)> \u202e\x1b[31mred"


@pytest.fixture
def page(home):
    return f"{home}jobs"


def confirmed(client, path, fields):
    asked = client.post(path, fields)
    assert asked.status_code == 200, asked
    token = asked.content.decode().split('name="confirm_token" value="')[1].split('"')[0]
    return client.post(path, {**fields, "confirm_token": token})


def test_the_list_filters_by_state_queue_and_type(signed_in, page, queue, project):
    other = make_queue(project)
    make_job(queue, "mail")
    make_job(queue, "mail", delay_s=60)
    make_job(other, "sms")
    client = signed_in("viewer")

    def count(query: str) -> int:
        html: str = client.get(f"{page}?{query}").content.decode()
        return html.count('<tr id="j-')

    assert count("") == 3
    assert count("status=scheduled") == 1
    assert count(f"queue={other.pk}") == 1
    assert count(f"queue={queue.pk}&type=mail") == 2
    assert count(f"queue={queue.pk}&type=sms") == 0
    assert count("status=completed") == 0


def test_pages_go_on_where_the_last_one_ended(signed_in, page, queue):
    for _ in range(55):
        make_job(queue)
    client = signed_in("viewer")
    first = client.get(page).content.decode()
    after = first.split('rel="next"')[0].rsplit("after=", 1)[1].split('"')[0].split("&")[0]
    second = client.get(f"{page}?after={after}").content.decode()

    assert (first.count('<tr id="j-'), second.count('<tr id="j-')) == (50, 5)


@pytest.mark.parametrize(
    "query", ["?status=?", "?queue=x&type=%00", "?window=9", "?after=x", "?type=mail", "?size=100"]
)
def test_whatever_the_query_says_there_is_a_page(signed_in, page, queue, query, django_assert_max_num_queries):
    make_job(queue, "<svg/onload=1>")
    client = signed_in("owner")
    with django_assert_max_num_queries(12):
        answer = client.get(page + query)

    assert answer.status_code == 200
    assert "<svg/onload" not in answer.content.decode()


def test_a_jobs_page_tells_its_whole_story_within_the_budget(signed_in, page, queue, django_assert_max_num_queries):
    job = make_job(queue, "mail", payload={"to": HOSTILE, "big": 2**70}, idempotency_key="k")
    lease = claim_one(queue)
    JobLog.objects.create(
        project_id=queue.project_id, execution_id=lease.token, job_id=job.pk, level="error", message=HOSTILE
    )
    end(lease, Failed(HOSTILE, "a stack " + HOSTILE))
    client = signed_in("viewer")
    with django_assert_max_num_queries(12):
        html = client.get(f"{page}/{job.pk}").content.decode()

    assert "Attempt 1" in html
    assert "a stack" in html
    assert str(2**70) in html
    assert "Why it does not run yet" in html
    assert "<svg onload" not in html
    assert "\u202e" not in html
    assert "\x1b" not in html


def test_cancel_and_run_again_without_a_script(signed_in, page, queue):
    job = make_job(queue)
    client = signed_in("member")
    client.post(f"{page}/{job.pk}/cancel")
    assert status_of(job) == "cancelled"
    again = client.post(f"{page}/{job.pk}/cancel", follow=True)
    assert "cancelled" in again.content.decode()
    client.post(f"{page}/{job.pk}/retry")

    assert status_of(job) == "queued"
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == ["job.cancel", "job.retry"]


def test_a_form_without_our_token_changes_nothing(page, queue, owner):
    job = make_job(queue)
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)

    assert client.post(f"{page}/{job.pk}/cancel").status_code == 403
    assert status_of(job) == "queued"


def test_jobs_of_others_do_not_exist(signed_in, page, project):
    foreign = make_job(make_queue(make_project()), "others.work")
    elsewhere = make_job(make_queue(make_project(project.organization)), "others.work")
    for job in (foreign, elsewhere):
        for path in ("", "/payload"):
            assert signed_in("owner").get(f"{page}/{job.pk}{path}").status_code == 404
        for verb in ("cancel", "retry"):
            assert signed_in("owner").post(f"{page}/{job.pk}/{verb}").status_code == 404
        assert status_of(job) == "queued"
        assert job.job_type not in signed_in("owner").get(f"{page}/new?from={job.pk}").content.decode()


def test_selected_jobs_are_cancelled_by_an_operation_after_a_question(signed_in, page, queue):
    mine, other, foreign = make_job(queue), make_job(queue), make_job(make_queue(make_project()))
    client = signed_in("member")

    confirmed(client, f"{page}/act", {"action": "cancel", "ids": [str(mine.pk), str(foreign.pk)]})

    assert Operation.objects.get().ids == [str(mine.pk)]
    assert status_of(other) == "queued"


@pytest.mark.django_db(transaction=True)
def test_all_that_match_at_the_moment_of_the_question_are_queued_again(signed_in, page, queue, project):
    old = job_in("failed", queue).job
    job_in("failed", make_queue(project))
    client, path = signed_in("member"), f"{page}/act"
    asked = client.post(
        path, {"action": "retry", "all": "1", "status": "failed", "queue": str(queue.pk), "window": "24h"}
    )
    html = asked.content.decode()
    kept = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', html))
    late = job_in("failed", queue).job

    assert client.post(path, kept).status_code == 302
    [operation_id] = unended_ids()
    while run_step(operation_id) is not None:
        pass
    assert (status_of(old), status_of(late)) == ("queued", "failed")


@pytest.mark.parametrize("fields", [{}, {"action": "drop"}, {"action": "cancel"}, {"action": "cancel", "ids": ["x"]}])
def test_actions_that_hit_nothing_change_nothing(signed_in, page, queue, fields):
    job_in("completed", queue)

    assert signed_in("member").post(f"{page}/act", fields).status_code == 302
    assert not Operation.objects.exists()


def test_a_job_is_submitted_by_hand_and_copied(signed_in, page, queue):
    client = signed_in("member")
    sent = {"queue": queue.pk, "job_type": "mail", "payload": '{"n": 12345678901234567890123}', "delay_s": "0",
            "priority": "3", "timeout_s": "5"}  # fmt: skip
    answer = client.post(f"{page}/new", sent)
    job = Job.objects.get()

    assert answer["Location"] == f"{page}/{job.pk}"
    assert (job.payload, job.priority, job.timeout_s) == ({"n": 12345678901234567890123}, 3, 5.0)
    copy = client.get(f"{page}/new?from={job.pk}").content.decode()
    assert "12345678901234567890123" in copy


@pytest.mark.parametrize(
    "bad",
    [
        {"payload": "{"}, {"payload": "[" * 5_000}, {"payload": '"\\u0000"'}, {"job_type": "a b"}, {"priority": "1e9"},
        {"queue": "x"}, {"timeout_s": "nan"}, {"delay_s": "-1"}, {"idempotency_key": "x" * 300},
        {"payload": "9" * 5_000}, {"payload": '{"token": "••••••"}'},
        {"job_type": "http.webhook", "payload": '{"url": "file:///etc/passwd"}'},
    ],
)  # fmt: skip
def test_bad_input_is_a_422_that_keeps_what_was_typed(signed_in, page, queue, bad):
    sent = {"queue": queue.pk, "job_type": "mail", "payload": "{}", "delay_s": "0", "priority": "0", **bad}
    answer = signed_in("member").post(f"{page}/new", sent)

    assert answer.status_code == 422
    assert 'class="problem"' in answer.content.decode()
    assert not Job.objects.exists()


def test_a_result_can_be_kept_as_a_file(signed_in, page, queue):
    job = make_job(queue, payload={"a": "<script>"})
    end(claim_one(queue), Succeeded('{"ok": true}'))
    answer = signed_in("viewer").get(f"{page}/{job.pk}/payload?part=result")

    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Type"].startswith("text/plain")
    assert json.loads(answer.content) == reload(job).result


def test_a_stranger_finds_nothing(client, page, queue):
    client.force_login(make_user())

    assert client.get(page).status_code == 404


def test_deadlines_are_read_on_the_viewers_clock(signed_in, page, queue):
    client = signed_in("member")
    client.cookies["tz"] = "Europe/Berlin"
    sent = {"queue": queue.pk, "job_type": "noop", "payload": "{}", "delay_s": "0", "priority": "0"}
    answer = client.post(
        f"{page}/new", {**sent, "start_deadline": "2999-07-01T12:00", "deadline": "2999-07-01T12:00:00+00:00"}
    )

    assert answer.status_code == 302, answer.content
    job = Job.objects.get()
    assert job.start_deadline is not None
    assert job.start_deadline.isoformat() == "2999-07-01T10:00:00+00:00"
    assert job.deadline is not None
    assert job.deadline.isoformat() == "2999-07-01T12:00:00+00:00"
    for name, value in (("deadline", "soon"), ("start_deadline", "2026-03-29T02:30")):
        refused = client.post(f"{page}/new", {**sent, name: value})
        assert refused.status_code == 422, value
    assert Job.objects.count() == 1


def test_an_error_leads_to_others_like_it(signed_in, page, queue):
    dead = job_in("dead_letter", queue).job
    html = signed_in("viewer").get(f"{page}/{dead.pk}").content.decode()
    assert f"{page}?error=boom" in html


def test_an_action_leads_back_to_the_list_it_came_from(signed_in, page, queue):
    job = make_job(queue)
    sent = {"action": "cancel", "ids": [str(job.pk)], "next": f"{page}?status=queued"}
    question = signed_in("member").post(f"{page}/act", sent).content.decode()
    assert f'href="{page}?status=queued">Keep it' in question
    assert f'name="next" value="{page}?status=queued"' in question
