"""One attempt on the event loop: time limits, cancellation, and handlers that resist them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from jobs.decisions import Cancelled, Discarded, Failed, Interrupted, Snoozed, Succeeded
from jobs.handlers.base import Discard, JobContext, Snooze, StopReason
from jobs.lease import Lease
from scheduler_project.lib import logs
from tests.worker_parts import Bench, lease_of, own_handlers


@pytest.fixture
def bench() -> Iterator[Bench]:
    """An executor with handlers of the test's own."""
    with own_handlers() as bench:
        yield bench


async def forever(ctx: JobContext) -> None:
    await asyncio.Event().wait()


def run(*attempts: Coroutine[Any, Any, Any]) -> None:
    async def together() -> None:
        await asyncio.wait_for(asyncio.gather(*[asyncio.ensure_future(a) for a in attempts]), 10)

    asyncio.run(together())


def verdict_when(bench: Bench, function: Any, **options: Any) -> Any:
    bench.handle("x", function, **options)
    lease = lease_of("x")
    run(bench.executor.run_async(lease))
    return bench.endings.verdict(lease)


async def stop_when_running(bench: Bench, lease: Lease, reason: StopReason) -> None:
    while lease.token not in bench.executor.running:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.to_thread(bench.executor.running[lease.token].stop, reason)


def test_what_an_async_handler_returns_is_its_result(bench: Bench) -> None:
    async def handler(ctx: JobContext) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"type": ctx.job_type}

    assert verdict_when(bench, handler) == Succeeded('{"type":"x"}')


@pytest.mark.parametrize(
    ("error", "verdict"), [(Snooze(3), Snoozed(3)), (Discard("no"), Discarded("no"))], ids=["snooze", "discard"]
)
def test_what_an_async_handler_asks_for_is_its_verdict(bench: Bench, error: Exception, verdict: Any) -> None:
    async def handler(ctx: JobContext) -> None:
        raise error

    assert verdict_when(bench, handler) == verdict


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), BaseException("bare")])
def test_no_error_of_any_kind_takes_the_loop_along(bench: Bench, error: BaseException) -> None:
    async def handler(ctx: JobContext) -> None:
        await asyncio.sleep(0)
        raise error

    verdict = verdict_when(bench, handler)

    assert isinstance(verdict, Failed)
    assert type(error).__name__ in verdict.error


def test_a_handler_that_takes_too_long_is_cancelled_and_fails_as_timed_out(bench: Bench) -> None:
    assert verdict_when(bench, forever, timeout_s=0.02) == Failed("timeout: the handler did not end within 0.02 s")


def test_a_handler_that_cleans_up_at_its_time_limit_may_do_so(bench: Bench) -> None:
    cleaned: list[bool] = []

    async def handler(ctx: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    verdict = verdict_when(bench, handler, timeout_s=0.02)

    assert isinstance(verdict, Failed)
    assert verdict.error.startswith("timeout")
    assert cleaned == [True]


def test_a_time_out_of_the_handlers_own_is_an_error_like_any_other(bench: Bench) -> None:
    async def handler(ctx: JobContext) -> None:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    verdict = verdict_when(bench, handler, timeout_s=60)

    assert isinstance(verdict, Failed)
    assert verdict.error.startswith("TimeoutError")


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [("cancelled", Cancelled("cancelled on request")), ("interrupted", Interrupted())],
)
def test_a_waiting_handler_is_stopped_from_another_thread(bench: Bench, reason: StopReason, verdict: Any) -> None:
    bench.handle("x", forever)
    lease = lease_of("x")

    run(bench.executor.run_async(lease), stop_when_running(bench, lease, reason))

    assert bench.endings.verdict(lease) == verdict


def test_a_handler_without_its_lease_is_stopped_and_dropped(bench: Bench) -> None:
    bench.handle("x", forever)
    lease = lease_of("x")

    run(bench.executor.run_async(lease), stop_when_running(bench, lease, "lost"))

    assert bench.endings.of(lease) is None


def test_a_handler_that_swallows_its_cancellation_and_succeeds_has_succeeded(bench: Bench) -> None:
    async def handler(ctx: JobContext) -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return 7
        return 0

    bench.handle("x", handler)
    lease = lease_of("x")

    run(bench.executor.run_async(lease), stop_when_running(bench, lease, "interrupted"))

    assert bench.endings.verdict(lease) == Succeeded("7")


def test_a_handler_that_cancels_itself_has_failed(bench: Bench) -> None:
    async def handler(ctx: JobContext) -> None:
        raise asyncio.CancelledError

    assert isinstance(verdict_when(bench, handler), Failed)


def test_stopping_one_handler_does_not_touch_its_neighbour(bench: Bench) -> None:
    async def quick(ctx: JobContext) -> str:
        await asyncio.sleep(0.05)
        return "done"

    bench.handle("x", forever)
    bench.handle("y", quick)
    stopped, other = lease_of("x"), lease_of("y")

    run(
        bench.executor.run_async(stopped),
        bench.executor.run_async(other),
        stop_when_running(bench, stopped, "cancelled"),
    )

    assert bench.endings.verdict(stopped) == Cancelled("cancelled on request")
    assert bench.endings.verdict(other) == Succeeded('"done"')


def test_log_fields_of_handlers_on_one_loop_do_not_mix(bench: Bench) -> None:
    async def handler(ctx: JobContext) -> bool:
        for _ in range(5):
            await asyncio.sleep(0)
            current = logs.current_job.get()
            assert current is not None
            assert current.job_id == ctx.job_id
        return True

    bench.handle("x", handler)
    leases = [lease_of("x") for _ in range(5)]

    run(*[bench.executor.run_async(lease) for lease in leases])

    assert {bench.endings.verdict(lease) for lease in leases} == {Succeeded("true")}
    assert bench.executor.running == {}
