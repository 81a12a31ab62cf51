"""One attempt in a thread: however the handler ends, there is one verdict and the thread lives on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.decisions import Cancelled, Discarded, Failed, Interrupted, Snoozed, Succeeded
from jobs.handlers.base import Cancel, Discard, JobContext, RetryAfter, Snooze, Stopped, StopReason
from scheduler_project.lib import logs
from tests.threads import Racer
from tests.worker_parts import Bench, lease_of, own_handlers


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """An executor with handlers of the test's own. This thread's connection is another test's and is left alone."""
    monkeypatch.setattr("jobs.worker.executor.has_open_connection", lambda: False)
    with own_handlers() as bench:
        yield bench


def verdict_when(bench: Bench, function: Any, payload: Any = None, **options: Any) -> Any:
    """Run one attempt of ``function`` in this thread."""
    bench.handle("x", function, **options)
    lease = lease_of("x", payload)
    bench.executor.run_sync(lease)
    return bench.endings.verdict(lease)


def raising(error: BaseException) -> Any:
    def run(ctx: JobContext) -> None:
        raise error

    return run


def test_a_handler_that_returns_nothing_succeeds_without_a_result(bench: Bench) -> None:
    assert verdict_when(bench, lambda ctx: None) == Succeeded(None)


@pytest.mark.parametrize(
    ("result", "text"), [({"a": [1, "ä"]}, '{"a":[1,"ä"]}'), (0, "0"), (False, "false"), ("", '""'), ([], "[]")]
)
def test_what_a_handler_returns_is_its_result(bench: Bench, result: Any, text: str) -> None:
    assert verdict_when(bench, lambda ctx: result) == Succeeded(text)


@pytest.mark.parametrize("result", [{1, 2}, object(), float("nan"), "a\0b", "x" * 2_000_000, {"x": b""}])
def test_a_result_that_can_not_be_stored_fails_the_attempt_and_says_why(bench: Bench, result: Any) -> None:
    verdict = verdict_when(bench, lambda ctx: result)

    assert isinstance(verdict, Failed)
    assert "can not be stored" in verdict.error


def test_a_result_that_breaks_while_it_is_written_fails_the_attempt(bench: Bench) -> None:
    class Broken(dict[str, int]):
        def items(self) -> Any:
            raise RuntimeError("broken result")

    verdict = verdict_when(bench, lambda ctx: Broken(a=1))

    assert isinstance(verdict, Failed)
    assert "broken result" in verdict.error


def test_an_error_fails_the_attempt_with_its_name_text_and_stack(bench: Bench) -> None:
    verdict = verdict_when(bench, raising(ValueError("no such customer")))

    assert isinstance(verdict, Failed)
    assert (verdict.error, verdict.retry_after_s) == ("ValueError: no such customer", None)
    assert verdict.stack is not None
    assert verdict.stack.startswith("Traceback")
    assert "in run" in verdict.stack


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), BaseException("bare"),
              MemoryError(), RecursionError(), StopIteration(), ExceptionGroup("many", [ValueError()])]
)  # fmt: skip
def test_no_error_of_any_kind_takes_the_thread_along(bench: Bench, error: BaseException) -> None:
    verdict = verdict_when(bench, raising(error))

    assert isinstance(verdict, Failed)
    assert type(error).__name__ in verdict.error


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (Snooze(30), Snoozed(30)),
        (RetryAfter(9), Failed("asked to retry after 9 s", None, 9)),
        (RetryAfter(9, "busy"), Failed("busy", None, 9)),
        (Discard("malformed"), Discarded("malformed")),
        (Discard(), Discarded("discarded by the handler")),
        (Cancel("not needed"), Cancelled("not needed")),
        (Cancel(), Cancelled("cancelled by the handler")),
    ],
)
def test_what_a_handler_asks_for_is_its_verdict(bench: Bench, error: Exception, verdict: Any) -> None:
    assert verdict_when(bench, raising(error)) == verdict


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class MuteDiscard(Discard, Mute): ...


class MuteCancel(Cancel, Mute): ...


class EmptySnooze(Snooze):
    def __init__(self) -> None: ...


class OddRetry(RetryAfter):
    delay_s = "soon"  # type: ignore[assignment]

    def __init__(self) -> None: ...


@pytest.mark.parametrize("kind", [Mute, MuteDiscard, MuteCancel, EmptySnooze, OddRetry])
def test_an_error_that_can_not_even_be_read_still_gives_a_verdict(bench: Bench, kind: type[Exception]) -> None:
    verdict = verdict_when(bench, raising(kind()))

    assert isinstance(verdict, Failed)
    assert kind.__name__ in verdict.error


@pytest.mark.parametrize(
    "error",
    [ValueError, Discard, Cancel, lambda text: RetryAfter(1, text)],
    ids=["error", "discard", "cancel", "retry"],
)
def test_secrets_in_errors_are_not_stored(bench: Bench, error: Any) -> None:
    verdict = verdict_when(bench, raising(error("POST http://ann:hunter2@x with Bearer hunter2")))

    assert "hunter2" not in repr(verdict)
    assert "http://ann:***@x" in repr(verdict)


def test_a_job_type_without_a_handler_fails_the_attempt(bench: Bench) -> None:
    lease = lease_of("unheard.of")

    bench.executor.run_sync(lease)

    assert bench.endings.verdict(lease) == Failed("No handler for job type 'unheard.of' in this worker.")


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [("cancelled", Cancelled("cancelled on request")), ("interrupted", Interrupted())],
)
def test_a_handler_that_obeys_ends_for_the_reason_it_was_given(bench: Bench, reason: StopReason, verdict: Any) -> None:
    bench.handle("x", lambda ctx: ctx.sleep(60))
    lease = lease_of("x")
    runner = Racer(lambda: bench.executor.run_sync(lease))
    runner.start()

    bench.context(lease).stop(reason)
    runner.result(10)

    assert bench.endings.verdict(lease) == verdict


def test_a_handler_that_looks_at_its_deadline_ends_as_timed_out(bench: Bench) -> None:
    verdict = verdict_when(bench, lambda ctx: ctx.sleep(60), timeout_s=0.02)

    assert verdict == Failed("timeout: the handler did not end within 0.02 s")


def test_any_error_after_an_interruption_is_taken_as_its_consequence(bench: Bench) -> None:
    def run(ctx: JobContext) -> None:
        ctx.stop("interrupted")
        raise ConnectionError("closed under me")

    assert verdict_when(bench, run) == Interrupted()


def test_an_error_of_its_own_after_a_cancel_request_is_a_failure(bench: Bench) -> None:
    def run(ctx: JobContext) -> None:
        ctx.stop("cancelled")
        raise ValueError("my own")

    assert isinstance(verdict_when(bench, run), Failed)


def test_a_result_reached_in_spite_of_a_stop_counts(bench: Bench) -> None:
    def run(ctx: JobContext) -> int:
        ctx.stop("interrupted")
        return 7

    assert verdict_when(bench, run) == Succeeded("7")


@pytest.mark.parametrize("error", [None, ValueError("x"), Discard("x"), Snooze(1), Stopped("lost"), SystemExit()])
def test_whatever_comes_after_the_lease_was_lost_is_dropped(bench: Bench, error: BaseException | None) -> None:
    def run(ctx: JobContext) -> int:
        ctx.stop("lost")
        if error:
            raise error
        return 7

    bench.handle("x", run)
    lease = lease_of("x")
    bench.executor.run_sync(lease)

    assert bench.endings.of(lease) is None


def test_the_context_tells_the_handler_who_it_is(bench: Bench) -> None:
    lease = lease_of("x", {"to": "ann"}, attempt_count=2)
    bench.handle(
        "x", lambda ctx: [ctx.job_id, ctx.attempt, ctx.fencing_number, ctx.trace_id, ctx.payload, ctx.job_type]
    )

    bench.executor.run_sync(lease)

    said = f'["{lease.job_id}",3,{lease.fencing_number},"{lease.trace_id}",{{"to":"ann"}},"x"]'
    assert bench.endings.verdict(lease) == Succeeded(said)


def test_log_fields_belong_to_the_job_only_while_it_runs(bench: Bench) -> None:
    seen: list[Any] = []
    bench.handle("x", lambda ctx: seen.append(logs.current_job.get()))
    lease = lease_of("x")

    bench.executor.run_sync(lease)

    assert [ctx.job_id for ctx in seen] == [lease.job_id]
    assert logs.current_job.get() is None
    assert bench.executor.running == {}


def test_the_ending_carries_the_lease_and_the_time_it_took(bench: Bench) -> None:
    bench.handle("x", lambda ctx: ctx.sleep(0.03))
    lease = lease_of("x", attempt_count=4)

    bench.executor.run_sync(lease)

    ending = bench.endings.of(lease)
    assert ending is not None
    assert (ending.job_id, ending.token, ending.attempt_count) == (lease.job_id, lease.token, 4)
    assert (ending.claimed_at, ending.worker_id) == (lease.claimed_at, bench.worker_id)
    assert ending.ran_ms is not None
    assert 30 <= ending.ran_ms < 5_000
