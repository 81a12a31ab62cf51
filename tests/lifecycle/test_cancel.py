"""cancel: waiting jobs end, running ones are asked, ended ones are left as they are."""

from __future__ import annotations

from uuid import uuid4

import pytest

from jobs.decisions import Cancelled, Failed
from jobs.lifecycle.cancel import cancel_job, cancel_jobs
from jobs.lifecycle.promote import promote_due
from jobs.models import Job
from jobs.states import TERMINAL
from queues.models import Queue
from scheduler_project.lib.errors import Conflict
from tests.factories import claim_from, claim_one, end, executions_of, job_in, make_job, make_jobs, reload

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", ["queued", "scheduled"])
def test_a_waiting_job_ends_at_once_with_the_reason(status: str) -> None:
    job, _ = job_in(status)

    answer = cancel_job(job.pk, reason="not needed: %s '\"\\ 日本")

    cancelled = reload(job)
    assert answer == "cancelled"
    assert (cancelled.status, cancelled.error_message) == ("cancelled", "not needed: %s '\"\\ 日本")
    assert cancelled.completed_at == cancelled.cancel_requested_at == cancelled.updated_at
    assert executions_of(job) == []
    assert claim_from(job.queue, 5) == []


@pytest.mark.parametrize("status", ["claimed", "running"])
def test_a_job_in_flight_is_asked_to_stop_and_keeps_its_lease(status: str) -> None:
    job, lease = job_in(status)
    assert lease is not None

    answer = cancel_job(job.pk, reason="not needed")

    asked = reload(job)
    assert answer == asked.status == status
    assert asked.cancel_requested_at is not None
    assert (asked.completed_at, asked.error_message, str(asked.lease_token)) == (None, None, lease.token)


def test_a_job_in_flight_that_obeys_ends_as_cancelled(queue: Queue) -> None:
    job = make_job(queue)
    lease = claim_one(queue)
    cancel_job(job.pk, reason="not needed")

    end(lease, Cancelled("cancelled on request"))

    assert (reload(job).status, reload(job).error_message) == ("cancelled", "cancelled on request")


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_an_ended_job_can_not_be_cancelled_and_stays_as_it_is(status: str) -> None:
    job, _ = job_in(status)
    before = Job.objects.values().get(pk=job.pk)

    with pytest.raises(Conflict, match="has ended already"):
        cancel_job(job.pk, reason="too late")

    assert Job.objects.values().get(pk=job.pk) == before


def test_a_job_that_does_not_exist_can_not_be_cancelled(db: None) -> None:
    with pytest.raises(Conflict):
        cancel_job(uuid4(), reason="who?")


def test_asking_twice_keeps_the_first_time(queue: Queue) -> None:
    job = make_job(queue)
    claim_one(queue)
    cancel_job(job.pk, reason="first")
    first = reload(job).cancel_requested_at

    cancel_job(job.pk, reason="second")

    assert reload(job).cancel_requested_at == first


def test_a_retry_that_waits_ends_and_is_not_tried_again(queue: Queue) -> None:
    job = make_job(queue)
    end(claim_one(queue), Failed("boom", None, 0.0))

    assert cancel_job(job.pk, reason="enough") == "cancelled"

    assert promote_due(limit=10) == 0
    assert [execution.status for execution in executions_of(job)] == ["failed"]


def test_many_are_cancelled_each_by_its_state_and_ended_ones_are_missing(queue: Queue) -> None:
    completed, _ = job_in("completed")
    waiting = make_jobs(queue, 3)
    claimed = claim_from(queue, 1)
    ids = [job.id for job in waiting]

    answers = cancel_jobs([*ids, completed.pk, uuid4(), ids[0]], reason="all")

    in_flight = [id_ for id_ in ids if str(id_) == claimed[0].job_id]
    assert set(answers) == set(ids)
    assert {id_ for id_, status in answers.items() if status == "running"} == set(in_flight)
    assert sorted(Job.objects.values_list("status", flat=True)) == ["cancelled", "cancelled", "completed", "running"]


def test_nothing_to_cancel_is_no_error(db: None) -> None:
    assert cancel_jobs([], reason="none") == {}
