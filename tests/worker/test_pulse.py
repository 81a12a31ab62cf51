"""The pulse: what one beat extends and tells, and what it does when the worker falls silent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import psutil
import psycopg
import pytest
from django.db.models.functions import Now

from jobs.decisions import Unbegun
from jobs.lease import Lease
from jobs.lifecycle.cancel import cancel_job
from jobs.models import Job, Worker, WorkerHeartbeat
from jobs.services.workers import register
from jobs.worker.pulse import Pulse
from queues.models import Queue
from scheduler_project.lib import pg
from tests.factories import claim_from, end, make_jobs, reload

pytestmark = pytest.mark.django_db(transaction=True)


class Answers:
    """What the pulse tells its worker."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.cancel: list[str] = []
        self.errors: list[str] = []

    def take(self, *, lost: list[str], cancel: list[str], error: str = "", **_: Any) -> None:
        """In place of the pipe."""
        self.lost += lost
        self.cancel += cancel
        self.errors += [error] if error else []


@pytest.fixture
def worker(transactional_db: None) -> str:
    """A worker that registered, and was last seen long ago."""
    worker_id = register(queue_names=(), seats=4)
    Worker.objects.update(last_seen_at=Now() - timedelta(hours=1))
    return str(worker_id)


@pytest.fixture
def answers() -> Answers:
    """What the pulse tells."""
    return Answers()


@pytest.fixture
def pulse(worker: str, answers: Answers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pulse]:
    """The pulse of this very process, beating in it."""
    pulse = Pulse(pg.direct_parameters(), worker, os.getpid())
    monkeypatch.setattr(pulse, "_answer", answers.take)
    yield pulse
    if pulse._connection is not None:
        pulse._connection.close()


@pytest.fixture
def leases(committed_queue: Queue, worker: str) -> list[Lease]:
    """Three leases of the worker that run out in a minute."""
    make_jobs(committed_queue, 3)
    return claim_from(committed_queue, 3, worker_id=worker)


def beat(pulse: Pulse, leases: list[Lease], *, lease_s: int = 600, status: str = "active") -> None:
    held = [[lease.job_id, lease.token, lease_s] for lease in leases]
    pulse._beat({"held": held, "status": status, "active": len(leases), "interval_s": 1.0})


def expiries(leases: list[Lease]) -> list[datetime]:
    return [at for lease in leases if (at := reload(lease.job_id).lease_expires_at)]


def test_a_beat_extends_the_leases_that_are_held_and_no_others(
    pulse: Pulse, leases: list[Lease], answers: Answers
) -> None:
    before = expiries(leases)

    beat(pulse, leases[:2])

    after = expiries(leases)
    assert [a - b > timedelta(minutes=5) for a, b in zip(after, before, strict=True)] == [True, True, False]
    assert (answers.lost, answers.cancel, answers.errors) == ([], [], [])


def test_a_beat_says_that_the_worker_lives_and_how_it_is(pulse: Pulse, leases: list[Lease], worker: str) -> None:
    beat(pulse, leases, status="draining")

    seen = Worker.objects.annotate(now=Now()).get(pk=worker)
    assert seen.status == "draining"
    assert seen.now - seen.last_seen_at < timedelta(minutes=1)
    heartbeat = WorkerHeartbeat.objects.get()
    assert (str(heartbeat.worker_id), heartbeat.active_job_count, heartbeat.metadata) == (worker, 3, {})
    assert heartbeat.memory_mb > 1


def test_a_beat_without_leases_is_one_too(pulse: Pulse, worker: str) -> None:
    beat(pulse, [])

    assert WorkerHeartbeat.objects.filter(worker_id=worker).count() == 1


def test_a_lost_lease_is_told_and_stays_lost(pulse: Pulse, leases: list[Lease], answers: Answers) -> None:
    end(leases[0], Unbegun())

    beat(pulse, leases)

    assert answers.lost == [leases[0].token]
    assert reload(leases[0].job_id).status == "queued"


def test_a_lease_that_another_worker_holds_now_is_told_and_not_extended(
    pulse: Pulse, leases: list[Lease], answers: Answers, committed_queue: Queue
) -> None:
    end(leases[0], Unbegun())
    [theirs] = claim_from(committed_queue, 1)
    before = expiries([theirs])

    beat(pulse, leases)

    assert answers.lost == [leases[0].token]
    assert expiries([theirs]) == before


def test_a_request_to_stop_is_told_and_the_lease_extended_all_the_same(
    pulse: Pulse, leases: list[Lease], answers: Answers
) -> None:
    cancel_job(Job.objects.get(pk=leases[1].job_id).pk, reason="stop")
    before = expiries(leases)

    beat(pulse, leases)

    assert (answers.cancel, answers.lost) == ([leases[1].token], [])
    assert expiries(leases)[1] > before[1]


def test_a_worker_that_fell_silent_while_computing_keeps_all_its_leases_and_nobody_elses(
    pulse: Pulse, leases: list[Lease], answers: Answers, committed_queue: Queue
) -> None:
    make_jobs(committed_queue, 1)
    theirs = claim_from(committed_queue, 1)
    Job.objects.in_flight().update(lease_expires_at=Now() + timedelta(seconds=5))
    mine_before, theirs_before = expiries(leases), expiries(theirs)

    pulse._beat_silently()

    assert all(after > before for after, before in zip(expiries(leases), mine_before, strict=True))
    assert expiries(theirs) == theirs_before
    assert WorkerHeartbeat.objects.get().metadata == {"silent": True}
    assert answers.lost == []


@pytest.mark.parametrize(
    ("status", "share", "is_computing"),
    [
        (psutil.STATUS_RUNNING, 0.9, True),
        (psutil.STATUS_SLEEPING, 0.06, True),
        (psutil.STATUS_SLEEPING, 0.01, False),
        (psutil.STATUS_STOPPED, 0.9, False),
        (psutil.STATUS_ZOMBIE, 0.9, False),
    ],
)
def test_a_silent_worker_counts_as_computing_only_if_it_lives_and_uses_the_processor(
    pulse: Pulse, monkeypatch: pytest.MonkeyPatch, status: str, share: float, is_computing: bool
) -> None:
    monkeypatch.setattr(pulse._process, "status", lambda: status)
    pulse._interval_s, pulse._cpu_s = 2.0, 100.0
    monkeypatch.setattr(pulse, "_cpu_now", lambda: 100.0 + 2.0 * share)

    assert pulse._is_computing() is is_computing


def test_a_worker_that_is_gone_is_not_computing(pulse: Pulse, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Any:
        raise psutil.NoSuchProcess(1)

    monkeypatch.setattr(pulse._process, "status", gone)
    monkeypatch.setattr(pulse._process, "cpu_times", gone)
    pulse._cpu_s = -100.0

    assert pulse._is_computing() is False


def test_a_beat_that_finds_the_database_away_says_so_and_the_next_one_connects_again(
    pulse: Pulse, leases: list[Lease], answers: Answers
) -> None:
    beat(pulse, leases)
    assert pulse._connection is not None
    with psycopg.connect(**pg.direct_parameters(), autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s, 5000)", [pulse._connection.info.backend_pid])

    beat(pulse, leases)
    assert [error.split(":")[0] for error in answers.errors] == ["extend_leases"]
    assert answers.lost == []
    before = expiries(leases)
    beat(pulse, leases, lease_s=3_600)

    assert expiries(leases) > before
    assert len(answers.errors) == 1
