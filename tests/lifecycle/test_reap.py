"""reap: attempts whose lease ran out end as lost."""

from __future__ import annotations

import pytest

from dlq.models import DeadLetter
from jobs.decisions import WORKER_LOST, Failed, Succeeded
from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.reap import expired_ids, reap_expired
from jobs.lifecycle.requeue import requeue_job
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, claim_one, end, executions_of, lapse, make_due, make_job, make_jobs, reload

pytestmark = pytest.mark.django_db


def test_live_leases_are_left_alone(queue: Queue) -> None:
    make_jobs(queue, 3)
    claim_from(queue, 2, starts=1)

    assert reap_expired(limit=10) == 0
    assert expired_ids(10) == []
    assert sorted(Job.objects.values_list("status", flat=True)) == ["claimed", "queued", "running"]


@pytest.mark.parametrize("starts", [0, 1])
def test_an_expired_attempt_is_used_up_recorded_as_lost_and_tried_again(queue: Queue, starts: int) -> None:
    make_job(queue)
    worker_id = uuid7()
    lease = claim_one(queue, starts=starts, worker_id=worker_id)
    lapse(lease)

    assert reap_expired(limit=10) == 1

    job = reload(lease.job_id)
    assert (job.status, job.attempt_count, job.lease_token) == ("scheduled", 1, None)
    assert job.run_at > job.created_at
    assert "lease ran out" in str(job.error_message)
    [execution] = executions_of(job)
    assert (str(execution.pk), execution.status, execution.attempt_number) == (lease.token, "lost", 1)
    assert (execution.worker_id, execution.started_at, execution.duration_ms) == (worker_id, None, None)
    assert execution.claimed_at <= execution.finished_at


def test_the_last_attempt_is_buried_as_lost(queue: Queue) -> None:
    job = make_job(queue, max_attempts=1, payload={"n": 1})
    lapse(claim_one(queue))

    reap_expired(limit=10)

    assert reload(job).status == "dead_letter"
    letter = DeadLetter.objects.get()
    assert (letter.failure_reason, letter.payload_snapshot, letter.attempt_count) == (WORKER_LOST, {"n": 1}, 1)


def test_a_job_that_is_lost_again_and_again_runs_as_often_as_its_attempts(queue: Queue) -> None:
    job = make_job(queue, max_attempts=3)

    starts = 0
    while reload(job).status != "dead_letter":
        lapse(claim_one(queue))
        starts += 1
        reap_expired(limit=10)
        if reload(job).status == "scheduled":
            make_due(job)

    assert starts == 3
    assert [execution.attempt_number for execution in executions_of(job)] == [1, 2, 3]


def test_a_late_settle_of_a_reaped_attempt_changes_nothing(queue: Queue) -> None:
    make_job(queue)
    lease = claim_one(queue)
    lapse(lease)
    reap_expired(limit=10)
    before = Job.objects.values().get()

    settled = end(lease, Succeeded('"late"'))

    assert [lost.token for lost in settled.lost] == [lease.token]
    assert Job.objects.values().get() == before
    assert [execution.status for execution in executions_of(lease.job_id)] == ["lost"]


def test_a_lost_job_that_somebody_asked_to_stop_is_cancelled_and_not_tried_again(queue: Queue) -> None:
    job = make_job(queue)
    lease = claim_one(queue)
    cancel_job(job.pk, reason="not needed")
    lapse(lease)

    reap_expired(limit=10)

    assert reload(job).status == "cancelled"
    assert [execution.status for execution in executions_of(job)] == ["lost"]


def test_no_more_than_the_limit_is_reaped_at_once(queue: Queue) -> None:
    make_jobs(queue, 7)
    for lease in claim_from(queue, 7):
        lapse(lease)

    assert [reap_expired(limit=3) for _ in range(4)] == [3, 3, 1, 0]


def test_only_and_skip_choose_which_jobs_are_reaped(queue: Queue) -> None:
    make_jobs(queue, 3)
    leases = claim_from(queue, 3)
    for lease in leases:
        lapse(lease)
    first, second, third = (lease.job_id for lease in leases)

    assert set(expired_ids(10)) == {first, second, third}
    assert reap_expired(limit=10, skip=[first], only=[first, second]) == 1
    assert [reload(job_id).status for job_id in (first, second, third)] == ["running", "scheduled", "running"]


def test_jobs_of_many_queues_and_rules_are_reaped_together(queue: Queue) -> None:
    from tests.factories import make_queue

    other = make_queue()
    once = make_job(queue, max_attempts=1)
    often = make_job(other, max_attempts=9)
    for queue_ in (queue, other):
        lapse(claim_one(queue_))

    assert reap_expired(limit=10) == 2
    assert (reload(once).status, reload(often).status) == ("dead_letter", "scheduled")


def lose(job: Job) -> None:
    """One attempt whose worker dies."""
    if reload(job).status == "scheduled":
        make_due(job)
    lapse(claim_one(job.queue))
    reap_expired(limit=10)


def test_a_job_that_loses_its_worker_three_times_is_poison_whatever_attempts_remain(queue: Queue) -> None:
    job = make_job(queue, max_attempts=10)

    for _ in range(3):
        assert reload(job).status != "dead_letter"
        lose(job)

    assert reload(job).status == "dead_letter"
    assert DeadLetter.objects.get().failure_reason == WORKER_LOST


def test_losses_before_a_requeue_do_not_count(queue: Queue) -> None:
    job = make_job(queue, max_attempts=10)
    for _ in range(3):
        lose(job)
    requeue_job(job.pk, by=None)

    for _ in range(2):
        lose(job)

    assert (reload(job).status, reload(job).attempt_count) == ("scheduled", 2)


def test_failures_between_losses_are_not_losses(queue: Queue) -> None:
    job = make_job(queue, max_attempts=10)
    for is_lost in (True, False, False, True):
        if is_lost:
            lose(job)
        else:
            make_due(job)
            end(claim_one(queue), Failed("x"))

    assert (reload(job).status, reload(job).attempt_count) == ("scheduled", 4)


def test_a_crash_of_a_process_counts_as_a_loss(queue: Queue) -> None:
    job = make_job(queue, max_attempts=10)
    lose(job)
    make_due(job)
    lease = claim_one(queue)
    assert lease.lost_count == 1

    end(lease, Failed("ProcessDied", is_crash=True))

    assert (reload(job).lost_count, reload(job).status) == (2, "scheduled")
    lose(job)
    assert DeadLetter.objects.get().failure_reason == WORKER_LOST
