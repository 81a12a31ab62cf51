"""requeue: an ended job gets a fresh budget of attempts."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from dlq.models import DeadLetter
from dlq.services import discard
from jobs.decisions import Failed, Succeeded
from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.exchange import Handover, Progress, exchange
from jobs.lifecycle.requeue import requeue_job, requeue_jobs
from jobs.models import Job
from jobs.states import TERMINAL, JobStatus
from queues.models import Queue
from scheduler_project.lib.errors import Conflict, NotFound
from tests.factories import claim_one, end, executions_of, job_in, make_due, make_job, reload

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_an_ended_job_is_queued_as_new_and_its_history_stays(status: str) -> None:
    job, lease = job_in(status, payload={"n": 1}, priority=3)
    history = [(execution.pk, execution.status) for execution in executions_of(job)]

    requeue_job(job.pk, by=None)

    queued = reload(job)
    assert (queued.status, queued.attempt_count) == ("queued", 0)
    assert (queued.result, queued.error_message, queued.completed_at, queued.cancel_requested_at) == (None,) * 4
    assert (queued.payload, queued.priority, queued.fencing_number) == ({"n": 1}, 3, 1)
    assert queued.run_at > job.run_at
    assert [(execution.pk, execution.status) for execution in executions_of(job)] == history
    assert lease is not None
    assert len(end(lease, Succeeded()).lost) == 1


@pytest.mark.parametrize("status", sorted(set(JobStatus) - TERMINAL))
def test_a_job_that_has_not_ended_can_not_be_requeued(status: str) -> None:
    job, _ = job_in(status)
    before = Job.objects.values().get(pk=job.pk)

    with pytest.raises(Conflict, match=f"The job is {status}"):
        requeue_job(job.pk, by=None)

    assert Job.objects.values().get(pk=job.pk) == before


def test_a_job_that_does_not_exist_is_not_found(db: None) -> None:
    with pytest.raises(NotFound):
        requeue_job(uuid4(), by=None)


def test_a_requeued_job_has_its_full_number_of_attempts_again(queue: Queue) -> None:
    job = make_job(queue, max_attempts=2)
    for _ in range(2):
        end(claim_one(queue), Failed("boom"))
        if reload(job).status == "scheduled":
            make_due(job)
    assert reload(job).status == "dead_letter"

    requeue_job(job.pk, by=None)
    end(claim_one(queue), Failed("again"))

    assert reload(job).status == "scheduled"
    assert [(e.attempt_number, e.fencing_number) for e in executions_of(job)] == [(1, 1), (2, 2), (1, 3)]


def test_the_dead_letter_is_resolved_by_whoever_requeued(db: None) -> None:
    user = User.objects.create_user("ann@example.com", "password123")
    job, _ = job_in("dead_letter")

    requeue_job(job.pk, by=user.pk)

    letter = DeadLetter.objects.get()
    assert (letter.resolved, letter.resolution_action, letter.resolved_by) == (True, "requeued", user)
    assert letter.resolved_at is not None


def test_a_job_that_dies_again_gets_a_new_letter_and_can_be_requeued_again(queue: Queue) -> None:
    job = make_job(queue, max_attempts=1)
    for _ in range(2):
        end(claim_one(queue), Failed("boom"))
        requeue_job(job.pk, by=None)

    end(claim_one(queue), Failed("boom"))

    assert sorted(DeadLetter.objects.values_list("resolved", flat=True)) == [False, True, True]


def test_a_discarded_letter_keeps_its_job_dead(db: None) -> None:
    job, _ = job_in("dead_letter")
    discard(DeadLetter.objects.get().pk, by=None)

    with pytest.raises(Conflict, match="was discarded"):
        requeue_job(job.pk, by=None)

    assert reload(job).status == "dead_letter"


def test_a_requeued_job_can_not_be_requeued_twice(db: None) -> None:
    job, _ = job_in("dead_letter")
    requeue_job(job.pk, by=None)

    with pytest.raises(Conflict):
        requeue_job(job.pk, by=None)
    with pytest.raises(Conflict, match="resolved already"):
        discard(DeadLetter.objects.get().pk, by=None)


def test_a_job_of_a_deleted_queue_can_not_be_requeued_since_nobody_would_run_it(queue: Queue) -> None:
    job = make_job(queue, max_attempts=1)
    end(claim_one(queue), Failed("boom"))
    Queue.objects.filter(pk=queue.pk).update(deleted_at=Now())

    with pytest.raises(Conflict, match=r"queue .* was deleted"):
        requeue_job(job.pk, by=None)

    assert reload(job).status == "dead_letter"
    assert not DeadLetter.objects.get().resolved


def test_progress_and_cancel_request_of_the_past_do_not_follow_the_job(queue: Queue) -> None:
    job = make_job(queue)
    lease = claim_one(queue)
    exchange(Handover(progress=[Progress(lease.job_id, lease.token, 40, "half")]))
    cancel_job(job.pk, reason="stop")
    end(lease, Succeeded())

    requeue_job(job.pk, by=None)
    end(claim_one(queue), Succeeded())

    again = reload(job)
    assert (again.status, again.progress_percent, again.progress_note) == ("completed", None, None)


def test_a_requeued_job_waits_behind_those_queued_before_it(queue: Queue) -> None:
    ended = make_job(queue)
    end(claim_one(queue), Succeeded())
    waiting = make_job(queue)

    requeue_job(ended.pk, by=None)

    assert [claim_one(queue).job_id for _ in range(2)] == [str(waiting.pk), str(ended.pk)]


def test_of_many_those_are_queued_again_that_can_run_again(queue: Queue) -> None:
    fit = [job_in(status).job for status in sorted(TERMINAL)]
    unfit = [job_in(status).job for status in sorted(set(JobStatus) - TERMINAL)]
    discarded, orphan = (job_in("dead_letter").job for _ in range(2))
    discard(DeadLetter.objects.get(job_id=discarded.pk).pk, by=None)
    Queue.objects.filter(pk=orphan.queue_id).update(deleted_at=Now())
    before = {job.pk: reload(job).status for job in [*unfit, discarded, orphan]}

    again = requeue_jobs([job.pk for job in [*fit, *unfit, discarded, orphan]] + [uuid4()], by=None)

    assert set(again) == {job.pk for job in fit}
    assert {reload(job).status for job in fit} == {"queued"}
    assert {job_id: Job.objects.get(pk=job_id).status for job_id in before} == before
    open_letters = DeadLetter.objects.filter(resolved=False).values_list("job_id", flat=True)
    assert list(open_letters) == [orphan.pk]


@pytest.mark.parametrize("count", [1, 40])
def test_many_take_no_more_statements_than_one(
    queue: Queue, count: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    jobs = [make_job(queue, max_attempts=1) for _ in range(count)]
    for _ in range(count):
        end(claim_one(queue), Failed("boom"))

    with django_assert_max_num_queries(9):
        assert len(requeue_jobs([job.pk for job in jobs], by=None)) == count

    assert not DeadLetter.objects.filter(resolved=False).exists()
