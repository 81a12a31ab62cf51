"""A queue's limit holds over all workers at every moment; and the test would see it if it did not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection

from jobs.decisions import Succeeded
from jobs.lease import Lease
from jobs.lifecycle import claim as module
from jobs.lifecycle.claim import Claim, Want, claim_calls
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.statements import Call, Statement
from tests.factories import claim_from, end, make_jobs, make_organization, make_project, make_queue
from tests.threads import Racer, Session, run_together

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 7
#: As open_queues.sql leaves the queues' ids behind, but without taking a lock.
WITHOUT_LOCK = Statement(
    "open_queues_broken",
    "select set_config('punctual.limited_queues', array_to_string(%(queue_ids)s::uuid[], ','), true),"
    " set_config('punctual.unlimited_queues', '', true)",
)


@pytest.fixture
def limited(transactional_db: None) -> Queue:
    """A queue with a limit of seven and a thousand jobs."""
    queue = make_queue(make_project(make_organization()), max_concurrency=LIMIT)
    make_jobs(queue, 1_000)
    return queue


@pytest.fixture
def broken_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims count and claim without the queue's lock."""

    def unguarded(claim: Claim) -> list[Call]:
        open_queues, pick = claim_calls(claim)
        return [Call(WITHOUT_LOCK, open_queues.params), pick]

    monkeypatch.setattr(module, "claim_calls", unguarded)


class Sampler:
    """Counts the jobs in flight again and again, with a connection of its own, and keeps the most it saw."""

    def __init__(self, queue: Queue) -> None:
        self._queue, self._stop = queue, threading.Event()
        self.counts: list[int] = []
        self._thread = Racer(self._run)

    def look(self) -> int:
        """One sample."""
        with connection.cursor() as cursor:
            cursor.execute(
                "select count(*) from jobs where queue_id = %s and status in ('claimed', 'running')", [self._queue.pk]
            )
            count = int(cursor.fetchone()[0])
        self.counts.append(count)
        return count

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.result(10)


def claim_and_settle(queue: Queue, until: float, seats: int, gain: Callable[[], None]) -> int:
    """Claim and settle until the time is over; how many jobs."""
    count = 0
    while time.monotonic() < until:
        leases = claim_from(queue, seats)
        gain()
        for lease in leases:
            end(lease, Succeeded())
        count += len(leases)
    return count


def test_at_most_seven_are_in_flight_while_eight_workers_claim_and_settle(limited: Queue) -> None:
    until = time.monotonic() + 3.0
    with Sampler(limited) as sampler:
        done = run_together([partial(claim_and_settle, limited, until, 1 + n % 4, lambda: None) for n in range(8)])

    print(
        f"\nlimit {LIMIT}, 8 workers: {sum(done)} jobs, {len(sampler.counts)} samples, at most {max(sampler.counts)}, "
        f"at the limit in {sum(count == LIMIT for count in sampler.counts) / len(sampler.counts):.0%} of them"
    )
    assert max(sampler.counts) == LIMIT  # never eight, and the limit is used
    assert Job.objects.filter(status="completed").count() == sum(done)


def two_claims_at_once(queue: Queue) -> int:
    """Two sessions each claim seven before either commits; how many are in flight then, as the sampler sees it."""
    with Session() as one, Session() as other:
        one.open_transaction()
        other.open_transaction()
        claims: list[list[Lease]] = [session(lambda: claim_from(queue, LIMIT)) for session in (one, other)]
        for session in (one, other):
            session.commit()
    count = Sampler(queue).look()
    assert count == sum(map(len, claims))
    return count


def test_two_claims_that_do_not_see_each_other_stay_within_the_limit(limited: Queue) -> None:
    assert two_claims_at_once(limited) == LIMIT


def test_without_the_lock_the_overshoot_is_seen(limited: Queue, broken_guard: None) -> None:
    assert two_claims_at_once(limited) == 2 * LIMIT


def test_a_worker_that_finds_the_queue_busy_goes_on_at_once_and_claims_elsewhere(limited: Queue) -> None:
    free = make_queue(limited.project)
    make_jobs(free, 3)
    with Session() as one:
        one.open_transaction()
        assert len(one(lambda: claim_from(limited, 2))) == 2

        began = time.monotonic()
        wants = [Want(str(limited.pk), 5), Want(str(free.pk), 5)]
        leases = module.claim_jobs(Claim(str(limited.pk), wants, module.KnownTypes.of([], ["*"]), 9))

        assert time.monotonic() - began < 2
        assert {lease.queue_id for lease in leases} == {str(free.pk)}
        one.rollback()
    assert len(claim_from(limited, 9)) == LIMIT
