"""Seats: never more handlers than seats, sync and async together; the buffer before them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from jobs.decisions import Failed, Succeeded
from jobs.handlers.base import JobContext
from jobs.lease import Lease
from jobs.worker.pool import STALE_S, Pool
from tests.waiting import wait_until
from tests.worker_parts import Bench, Gate, lease_of, own_handlers


@pytest.fixture
def bench() -> Iterator[Bench]:
    """An executor with handlers of the test's own: gate and agate wait, quick and aquick do not."""
    with own_handlers() as bench:
        bench.handle("quick", lambda ctx: None)
        yield bench


@pytest.fixture
def gate(bench: Bench) -> Iterator[Gate]:
    """What the handlers "gate" and "agate" wait for."""
    gate = Gate()

    async def on_loop(ctx: JobContext) -> None:
        await asyncio.to_thread(gate, ctx)

    async def quick(ctx: JobContext) -> None:
        await asyncio.sleep(0)

    bench.handle("gate", gate)
    bench.handle("agate", on_loop)
    bench.handle("aquick", quick)
    yield gate
    gate.open()


def pool_of(bench: Bench, seats: int) -> Pool:
    return Pool(seats, bench.executor, lambda: None)


def leases(*job_types: str) -> list[Lease]:
    return [lease_of(job_type) for job_type in job_types]


def entered(gate: Gate, count: int) -> None:
    wait_until(lambda: len(gate.entered) == count, timeout_s=10, what=f"{count} handlers run")


def test_a_new_pool_has_all_its_seats_free(bench: Bench) -> None:
    pool = pool_of(bench, 3)

    assert (pool.busy, pool.free, pool.buffered) == (0, 3, 0)


@pytest.mark.parametrize("kinds", [["gate"], ["agate"], ["gate", "agate"]])
def test_no_more_handlers_run_than_there_are_seats(bench: Bench, gate: Gate, kinds: list[str]) -> None:
    pool = pool_of(bench, 3)

    pool.take(leases(*kinds * 6))

    entered(gate, 3)
    assert (pool.busy, pool.free, pool.buffered) == (3, 0, len(kinds) * 6 - 3)
    gate.open()
    wait_until(lambda: pool.busy == 0, timeout_s=10)
    assert len(bench.endings.by_token) == len(kinds) * 6
    assert gate.most <= 3


def test_a_storm_of_sync_and_async_jobs_never_exceeds_the_seats_and_loses_none(bench: Bench) -> None:
    lock, running, most = threading.Lock(), 0, 0

    def note(by: int) -> None:
        nonlocal running, most
        with lock:
            running += by
            most = max(most, running)

    def sync(ctx: JobContext) -> None:
        note(1)
        note(-1)

    async def on_loop(ctx: JobContext) -> None:
        note(1)
        await asyncio.sleep(0)
        note(-1)

    bench.handle("s", sync)
    bench.handle("a", on_loop)
    pool = pool_of(bench, 4)

    for start in range(0, 2_000, 40):
        pool.take([lease_of("s" if (start + n) % 3 else "a") for n in range(40)])

    wait_until(lambda: len(bench.endings.by_token) == 2_000 and pool.busy == 0, timeout_s=20)
    assert 1 <= most <= 4
    assert {ending.verdict for ending in bench.endings.by_token.values() if ending} == {Succeeded()}


def test_buffered_jobs_run_in_the_order_in_which_they_were_claimed(bench: Bench) -> None:
    pool = pool_of(bench, 1)
    claimed = leases(*["quick"] * 50)

    pool.take(claimed)

    wait_until(lambda: len(bench.endings.order) == 50, timeout_s=10)
    assert bench.endings.order == [lease.job_id for lease in claimed]


def test_a_seat_frees_up_for_the_other_kind_of_handler(bench: Bench, gate: Gate) -> None:
    pool = pool_of(bench, 1)

    pool.take(leases("quick", "aquick", "quick", "aquick"))

    wait_until(lambda: len(bench.endings.by_token) == 4 and pool.busy == 0, timeout_s=10)


def test_the_loop_is_told_when_a_seat_becomes_idle(bench: Bench) -> None:
    told: list[int] = []
    pool = Pool(2, bench.executor, lambda: told.append(pool.free))

    pool.take(leases("quick"))

    wait_until(lambda: told, timeout_s=10)
    assert told == [2]


def test_jobs_that_have_not_begun_can_be_taken_back_and_those_that_have_can_not(bench: Bench, gate: Gate) -> None:
    pool = pool_of(bench, 1)
    claimed = leases("gate", "gate", "gate")
    pool.take(claimed)
    entered(gate, 1)

    back = pool.take_back(stale_only=False)

    assert back == claimed[1:]
    assert (pool.busy, pool.buffered) == (1, 0)
    gate.open()
    wait_until(lambda: pool.busy == 0, timeout_s=10)
    assert bench.endings.order == [claimed[0].job_id]


def test_only_jobs_that_waited_too_long_are_stale(bench: Bench, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("jobs.worker.pool.time.monotonic", lambda: clock[0])
    pool = pool_of(bench, 1)
    old, young = leases("gate", "gate"), leases("gate")
    pool.take(old)
    clock[0] += STALE_S / 2
    pool.take(young)

    clock[0] += STALE_S / 2

    assert pool.take_back(stale_only=True) == old[1:]
    assert pool.take_back(stale_only=True) == []
    assert pool.take_back(stale_only=False) == young


def test_dropped_jobs_never_run_and_the_others_keep_their_order(bench: Bench, gate: Gate) -> None:
    pool = pool_of(bench, 1)
    claimed = leases("gate", "gate", "gate", "gate")
    pool.take(claimed)
    entered(gate, 1)

    dropped = pool.drop({claimed[0].token, claimed[2].token, "unknown"})

    assert dropped == [claimed[2]]
    gate.open()
    wait_until(lambda: pool.busy == 0, timeout_s=10)
    assert bench.endings.order == [claimed[n].job_id for n in (0, 1, 3)]


def test_jobs_that_run_for_a_while_are_to_be_marked_as_running_once(bench: Bench, gate: Gate) -> None:
    pool = pool_of(bench, 2)
    first, second, waiting = leases("gate", "gate", "gate")
    pool.take([first, second, waiting])
    entered(gate, 2)

    assert pool.begun(60) == []
    assert pool.begun(0) == [first, second]
    assert pool.begun(0) == []


def test_a_job_whose_seat_has_not_taken_it_up_is_not_marked_as_running(bench: Bench) -> None:
    pool, taken_up = pool_of(bench, 1), threading.Event()
    begin = bench.executor.run_sync

    def late(lease: Lease) -> bool:
        taken_up.wait(10)
        return begin(lease)

    bench.executor.run_sync = late  # type: ignore[method-assign]

    pool.take(leases("quick"))

    assert (pool.busy, pool.begun(0)) == (1, [])
    taken_up.set()
    wait_until(lambda: pool.busy == 0, timeout_s=10)


def test_jobs_that_have_ended_need_no_mark(bench: Bench) -> None:
    pool = pool_of(bench, 2)

    pool.take(leases(*["quick"] * 10))

    wait_until(lambda: len(bench.endings.by_token) == 10 and pool.busy == 0, timeout_s=10)
    assert pool.unmarked == {}


def test_threads_are_made_as_needed_and_used_again(bench: Bench, gate: Gate) -> None:
    pool = pool_of(bench, 50)
    before = set(pool.thread_ids())
    for _ in range(20):
        pool.take(leases("quick"))
        wait_until(lambda: pool.busy == 0, timeout_s=10)

    assert len(set(pool.thread_ids()) - before) <= 2


def test_a_job_never_waits_for_a_thread_while_seats_are_free(bench: Bench, gate: Gate) -> None:
    class SlowToWake(SimpleQueue[Lease]):
        """A thread has taken its job out and the interpreter has not let it go on yet."""

        def get(self, *args: Any) -> Lease:
            lease = super().get(*args)
            taken.set()
            assert may_go_on.wait(10)
            return lease

    taken, may_go_on = threading.Event(), threading.Event()
    pool = pool_of(bench, 2)
    pool._inbox = SlowToWake()
    pool.take(leases("gate"))
    assert taken.wait(10)

    pool.take(leases("gate"))
    may_go_on.set()

    entered(gate, 2)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_handlers_that_do_their_worst_cost_no_seat(bench: Bench, kind: str) -> None:
    def sync(ctx: JobContext) -> None:
        raise SystemExit(1)

    async def cancels_itself(ctx: JobContext) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    bench.handle("bad", sync if kind == "sync" else cancels_itself)
    pool = pool_of(bench, 2)
    bad = leases(*["bad"] * 6)

    pool.take(bad)

    wait_until(lambda: len(bench.endings.by_token) == 6 and pool.busy == 0, timeout_s=10, what="all seats free again")
    assert {type(bench.endings.verdict(lease)) for lease in bad} <= {Failed, Succeeded}


def test_an_unknown_job_type_takes_a_seat_and_gives_it_back(bench: Bench) -> None:
    pool = pool_of(bench, 1)
    [unknown] = leases("unheard.of")

    pool.take([unknown])

    assert isinstance(bench.endings.verdict(unknown), Failed)
    wait_until(lambda: pool.busy == 0, timeout_s=10)
