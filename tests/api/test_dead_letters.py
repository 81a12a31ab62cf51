"""Dead letters through the API."""

from __future__ import annotations

import pytest

from dlq.models import DeadLetter
from jobs.decisions import Failed
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.models import Job
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_one, make_job, make_queue
from tests.personas import field_of


@pytest.fixture
def letter(queue):
    """The letter of a job that failed for good."""
    return _bury(queue)


def _bury(queue):
    job = make_job(queue, "test.echo", payload={"n": 1}, max_attempts=1)
    settle([Ending.of(claim_one(queue), Failed("downstream 500"), str(uuid7()))])
    return DeadLetter.objects.get(job_id=job.pk, resolved=False)


def test_letters_are_listed_newest_first_without_payloads(as_viewer, queue, letter):
    newer = _bury(queue)

    items = as_viewer.get("dead-letter").json()["items"]

    assert [item["id"] for item in items] == [str(newer.pk), str(letter.pk)]
    assert items[0]["last_error"] == "downstream 500"
    assert items[0]["failure_reason"] == "attempts exhausted"
    assert "payload_snapshot" not in items[0]
    assert as_viewer.get(f"dead-letter/{letter.pk}").json()["payload_snapshot"] == {"n": 1}


def test_letters_can_be_filtered(as_member, queue, project, letter):
    other = _bury(make_queue(project))
    as_member.post(f"dead-letter/{letter.pk}/resolve", {"action": "discarded"})

    def found(**query):
        return [item["id"] for item in as_member.get("dead-letter", **query).json()["items"]]

    assert found(queue_id=queue.pk) == [str(letter.pk)]
    assert found(resolved="false") == [str(other.pk)]
    assert found(resolved="true") == [str(letter.pk)]
    assert len(found()) == 2
    assert as_member.get("dead-letter", resolved="1").status_code == 400


def test_requeueing_gives_the_job_a_fresh_budget_once(as_member, member, letter):
    answer = as_member.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"})
    again = as_member.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"})

    assert answer.status_code == 200
    assert answer.json() == {
        "id": str(letter.pk),
        "resolution_action": "requeued",
        "job_id": str(letter.job_id),
    }
    assert again.status_code == 409
    job = Job.objects.get()
    assert (job.status, job.attempt_count) == ("queued", 0)
    letter.refresh_from_db()
    assert (letter.resolved, letter.resolved_by_id, letter.resolution_action) == (True, member.pk, "requeued")


def test_discarding_leaves_the_job_dead(as_machine, letter):
    answer = as_machine.post(f"dead-letter/{letter.pk}/resolve", {"action": "discarded"})
    after = as_machine.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"})

    assert (answer.status_code, answer.json()["job_id"]) == (200, None)
    assert after.status_code == 409
    assert Job.objects.get().status == "dead_letter"


def test_an_old_letter_does_not_decide_about_a_new_one(as_member, queue, letter):
    as_member.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"})
    settle([Ending.of(claim_one(queue), Failed("again"), str(uuid7()))])

    answer = as_member.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"})

    assert answer.status_code == 409
    assert Job.objects.get().status == "dead_letter"


def test_a_letter_whose_job_was_purged_is_submitted_anew(as_member, queue, letter):
    Job.objects.all().delete()

    answer = as_member.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"})
    again = as_member.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"})

    assert (answer.status_code, again.status_code) == (200, 409)
    job = Job.objects.get(pk=answer.json()["job_id"])
    assert (job.status, job.payload, job.queue_id, job.job_type) == ("queued", {"n": 1}, queue.pk, "test.echo")


@pytest.mark.parametrize(
    "body", [{}, {"action": "retry"}, {"action": 1}, {"action": None}, {"action": "requeued", "x": 1}]
)
def test_bad_decisions_are_refused(as_member, letter, body):
    answer = as_member.post(f"dead-letter/{letter.pk}/resolve", body)

    assert answer.status_code == 400
    assert field_of(answer) == ("x" if "x" in body else "action")


def test_the_list_costs_the_same_however_long_it_is(as_viewer, queue, django_assert_num_queries):
    for _ in range(3):
        _bury(queue)

    with django_assert_num_queries(3):
        as_viewer.get("dead-letter")
