"""Each duty, called directly: one round, and when it wants the next."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from jobs.models import Job, Worker, WorkerHeartbeat
from jobs.scheduler.daemon import SchedulerConfig, duties_of
from jobs.scheduler.duties import partitions, promote, reap, workers
from jobs.services.workers import deregister, register
from queues.models import Queue
from tests.clocks import StandingClock
from tests.factories import claim_from, claim_one, lapse, make_job, make_jobs, reload

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """The clock of the workers' duty."""
    clock = StandingClock()
    monkeypatch.setattr(workers, "time", clock)
    return clock


def due_in(job: Job, seconds: float) -> None:
    Job.objects.filter(pk=job.pk).update(run_at=Now() + timedelta(seconds=seconds))


def silent_for(worker_id: Any, seconds: float) -> None:
    Worker.objects.filter(pk=worker_id).update(last_seen_at=Now() - timedelta(seconds=seconds))


def test_a_leader_has_its_duties_each_under_a_name_of_its_own() -> None:
    names = [duty.name for duty in duties_of(SchedulerConfig())]

    assert {"promote", "reap", "workers", "partitions"} <= set(names)
    assert len(set(names)) == len(names)


def test_promotion_queues_what_is_due_and_comes_back_when_the_next_is(queue: Queue) -> None:
    due, next_, far = (make_job(queue, delay_s=3_600) for _ in range(3))
    due_in(due, -1)
    due_in(next_, 0.9)
    due_in(far, 500)

    wait_s = promote.duty(2.0).run()

    assert reload(due).status == "queued"
    assert wait_s is not None
    assert 0.2 < wait_s <= 0.9


def test_promotion_comes_back_at_once_for_what_became_due_while_it_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not due yet for the statement that promotes, due for the one that asks what is next."""
    monkeypatch.setattr(promote, "due_in_s", lambda: -0.0003)

    assert promote.duty(2.0).run() == promote.SHORTEST_S


def test_a_job_that_can_not_be_promoted_does_not_make_the_next_late(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set aside, or locked by somebody: it stays the first of all that are due."""
    stuck, next_ = (make_job(queue, delay_s=3_600) for _ in range(2))
    due_in(stuck, -30)
    due_in(next_, 0.9)
    monkeypatch.setattr(promote, "promote_due", lambda **_: 0)

    wait_s = promote.duty(2.0).run()

    assert wait_s is not None
    assert 0.2 < wait_s <= 0.9


@pytest.mark.parametrize("seconds", [None, 500])
def test_promotion_comes_back_after_its_period_when_nothing_is_due_soon(queue: Queue, seconds: float | None) -> None:
    if seconds:
        due_in(make_job(queue, delay_s=3_600), seconds)

    assert promote.duty(2.0).run() == 2.0


def test_promotion_of_more_than_a_batch_does_not_wait_between_batches(queue: Queue) -> None:
    make_jobs(queue, 1_200, delay_s=3_600)
    Job.objects.update(run_at=Now())
    duty = promote.duty(2.0)

    while duty.run() == 0.0:  # a round is bounded by time, and a slow machine needs several
        pass

    assert not Job.objects.filter(status="scheduled").exists()


def test_reaping_ends_all_expired_attempts(queue: Queue) -> None:
    make_jobs(queue, 450)
    leases = claim_from(queue, 450)
    Job.objects.filter(pk__in=[lease.job_id for lease in leases[:-1]]).update(lease_expires_at=Now())

    duty = reap.duty(15.0)
    while duty.run() == 0.0:  # a round ends after a while, however much is left
        pass

    assert Job.objects.in_flight().count() == 1
    assert Job.objects.filter(status="scheduled", attempt_count=1).count() == 449


def test_a_worker_that_fell_silent_is_lost_and_its_leases_lapse(clock: StandingClock, queue: Queue) -> None:
    silent, alive = register(queue_names=(), seats=1), register(queue_names=(), seats=1)
    make_jobs(queue, 2)
    of_silent, of_alive = claim_one(queue, worker_id=silent), claim_one(queue, worker_id=alive)
    duty = workers.duty(10.0, 30.0)
    silent_for(silent, 31)
    silent_for(alive, 29)
    clock.now += 31

    duty.run()
    reap.duty(15.0).run()

    assert [Worker.objects.get(pk=pk).status for pk in (silent, alive)] == ["lost", "active"]
    assert [reload(lease.job_id).status for lease in (of_silent, of_alive)] == ["scheduled", "running"]


def test_no_worker_is_silent_before_the_leader_was_at_work_for_that_long(clock: StandingClock, queue: Queue) -> None:
    worker_id = register(queue_names=(), seats=1)
    make_job(queue)
    lease = claim_one(queue, worker_id=worker_id)
    duty = workers.duty(10.0, 30.0)
    silent_for(worker_id, 3_600)

    for _ in range(4):
        duty.run()
        clock.now += 10

    assert Worker.objects.get(pk=worker_id).status == "active"
    assert reap.duty(15.0).run() is None
    assert reload(lease.job_id).status == "running"
    duty.run()
    assert Worker.objects.get(pk=worker_id).status == "lost"


@pytest.mark.parametrize("status", ["stopped", "lost"])
def test_workers_that_are_gone_are_not_retired_again(clock: StandingClock, status: str) -> None:
    worker_id = register(queue_names=(), seats=1)
    if status == "stopped":
        deregister(worker_id)
    else:
        Worker.objects.filter(pk=worker_id).update(status="lost")
    silent_for(worker_id, 3_600)
    duty = workers.duty(10.0, 30.0)
    clock.now += 31

    duty.run()

    assert Worker.objects.get(pk=worker_id).status == status


def test_retiring_never_lengthens_a_lease(clock: StandingClock, queue: Queue) -> None:
    worker_id = register(queue_names=(), seats=1)
    make_job(queue)
    lease = claim_one(queue, worker_id=worker_id)
    lapse(lease)
    Job.objects.update(lease_expires_at=Now() - timedelta(minutes=5))
    before = reload(lease.job_id).lease_expires_at
    silent_for(worker_id, 60)
    duty = workers.duty(10.0, 30.0)
    clock.now += 31

    duty.run()

    assert reload(lease.job_id).lease_expires_at == before


def test_old_heartbeats_are_forgotten_and_new_ones_kept(clock: StandingClock) -> None:
    worker_id = register(queue_names=(), seats=1)
    for hours in (0, 1, 30, 50):
        beat = WorkerHeartbeat.objects.create(worker_id=worker_id, active_job_count=0, cpu_percent=0, memory_mb=0)
        WorkerHeartbeat.objects.filter(pk=beat.pk).update(ts=Now() - timedelta(hours=hours))

    workers.duty(10.0, 30.0).run()

    assert WorkerHeartbeat.objects.count() == 2


def test_duties_may_run_twice(queue: Queue) -> None:
    due_in(make_job(queue, delay_s=3_600), -1)

    for make in (promote.duty, reap.duty, partitions.duty):
        make(1.0).run()
        make(1.0).run()

    assert [job.status for job in Job.objects.all()] == ["queued"]
