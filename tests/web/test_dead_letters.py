"""The pages of dead letters: groups, filters, and decisions that work without a script."""

from __future__ import annotations

import pytest

from dlq.models import DeadLetter
from jobs.decisions import Failed
from jobs.models import Operation
from orgs.models import AuditEntry
from tests.factories import claim_one, end, make_job, make_project, make_queue, status_of

HOSTILE = "<svg onload=alert(1)> \u202e\x1b[31mred"


@pytest.fixture
def bury(queue):
    """Makes a dead letter of a job type with an error."""

    def bury(error: str, job_type: str = "mail", of=None) -> DeadLetter:
        job = make_job(of or queue, job_type, max_attempts=1, payload={"to": HOSTILE})
        end(claim_one(of or queue), Failed(error))
        return DeadLetter.objects.get(job_id=job.pk)

    return bury


@pytest.fixture
def page(home):
    return f"{home}dead-letter"


def confirmed(client, path, fields):
    asked = client.post(path, fields)
    assert asked.status_code == 200
    token = asked.content.decode().split('name="confirm_token" value="')[1].split('"')[0]
    return client.post(path, {**fields, "confirm_token": token})


def test_alike_letters_are_one_group_whatever_their_numbers(signed_in, page, bury):
    for n in range(3):
        bury(f"timeout after {n} s for order '{n}'")
    bury("another cause")
    html = signed_in("viewer").get(page).content.decode()

    assert html.count('class="is-bad"') == 2
    assert "timeout after # s for order" in html


def test_a_group_shows_its_letters_and_is_queued_again_as_one_operation(signed_in, page, bury):
    letters = [bury(f"timeout {n}") for n in range(3)]
    other = bury("another")
    client = signed_in("member")
    key = client.get(page).content.decode().split("?group=")[1].split('"')[0]
    assert client.get(f"{page}?group={key}").content.decode().count('name="ids"') == 3

    answer = confirmed(client, f"{page}/resolve", {"group": key, "decision": "requeued"})

    assert answer.status_code == 302
    operation = Operation.objects.get()
    assert operation.action == "redrive"
    assert operation.ids == sorted(str(letter.pk) for letter in letters)
    assert str(other.pk) not in operation.ids
    assert AuditEntry.objects.get().action == "dead_letter.redrive"


def test_selected_letters_of_other_projects_are_left_alone(signed_in, page, bury):
    mine, foreign = bury("x"), bury("x", of=make_queue(make_project()))
    client = signed_in("member")

    confirmed(client, f"{page}/resolve", {"ids": [str(mine.pk), str(foreign.pk)], "decision": "discarded"})

    assert Operation.objects.get().ids == [str(mine.pk)]


def test_nothing_selected_changes_nothing(signed_in, page, bury):
    bury("x")
    for ids in ([], ["no id"]):
        assert signed_in("member").post(f"{page}/resolve", {"ids": ids, "decision": "discarded"}).status_code == 302
    assert not Operation.objects.exists()


def test_one_letter_is_queued_again_at_once_and_only_once(signed_in, page, bury):
    letter = bury("x")
    client = signed_in("member")

    client.post(f"{page}/{letter.pk}/resolve", {"decision": "requeued"})
    again = client.post(f"{page}/{letter.pk}/resolve", {"decision": "requeued"}, follow=True)

    assert status_of(letter.job_id) == "queued"
    assert "resolved already" in again.content.decode()
    assert "Queued again" in again.content.decode()


def test_discarding_asks_first(signed_in, page, bury):
    letter = bury("x")
    client, path = signed_in("member"), f"{page}/{letter.pk}/resolve"
    client.post(path, {"decision": "discarded"})
    letter.refresh_from_db()
    assert not letter.resolved

    assert confirmed(client, path, {"decision": "discarded"}).status_code == 302
    letter.refresh_from_db()
    assert letter.resolution_action == "discarded"


def test_a_letter_of_another_project_of_mine_is_not_on_this_ones_pages(signed_in, page, bury, project):
    elsewhere = bury("x", of=make_queue(make_project(project.organization)))

    assert signed_in("owner").get(f"{page}/{elsewhere.pk}").status_code == 404


@pytest.mark.parametrize("query", ["?view=list", "?view=list&type=%00&queue=x&resolved=?", "?group=nothing", "?view=?"])
def test_whatever_the_query_says_there_is_a_page(signed_in, page, bury, query, django_assert_max_num_queries):
    for n in range(3):
        bury(f"{HOSTILE} {n}", job_type="<svg/onload=1>")
    client = signed_in("owner")
    with django_assert_max_num_queries(12):
        answer = client.get(page + query)
    html = answer.content.decode()

    assert answer.status_code == 200
    assert "<svg onload" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_the_list_is_filtered(signed_in, page, bury, queue, project):
    other = make_queue(project)
    bury("x", "mail")
    bury("x", "sms", of=other)
    client = signed_in("viewer")

    def names(query: str) -> set[str]:
        html = client.get(f"{page}?view=list&{query}").content.decode()
        return {name for name in ("mail", "sms") if f"<bdi>{name}</bdi>" in html}

    assert names("") == {"mail", "sms"}
    assert names(f"queue={other.pk}") == {"sms"}
    assert names("type=mail") == {"mail"}
    assert names("resolved=yes") == set()


def test_an_empty_page_says_that_all_is_well(signed_in, page):
    assert "No dead letters" in signed_in("viewer").get(page).content.decode()
