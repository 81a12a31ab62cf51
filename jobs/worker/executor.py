"""One attempt: find the handler, run it, judge how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.db import close_old_connections

from jobs.decisions import (
    MAX_ERROR_CHARS,
    MAX_STACK_CHARS,
    Cancelled,
    Discarded,
    Failed,
    Interrupted,
    Snoozed,
    Succeeded,
    Verdict,
    storable,
)
from jobs.handlers.base import (
    BadPayload,
    Cancel,
    Discard,
    JobContext,
    Permanent,
    RetryAfter,
    Snooze,
    Stopped,
    StopReason,
)
from jobs.handlers.registry import Handler, find_handler
from jobs.lease import Ending, Lease, LeaseLost, Written
from jobs.worker.outbox import Outbox
from jobs.worker.transactional import run_in_transaction
from scheduler_project.lib import json_gate, logs, tracing
from scheduler_project.lib.dbthreads import has_open_connection

#: Runs an attempt in a process of its own; None when its lease was lost.
RunIsolated = Callable[[JobContext, Lease, Handler], Verdict | Written | None]
#: Takes an ended attempt; None instead of an ending means: the lease was lost, drop the result.
Done = Callable[[Lease, Ending | None], None]

_NOTHING = Succeeded()


class Executor:
    """Runs attempts and hands each one's ending to ``done``. Keeps the contexts of those that run."""

    def __init__(self, worker_id: str, outbox: Outbox, done: Done, run_isolated: RunIsolated | None = None) -> None:
        self.worker_id, self._outbox, self._done = worker_id, outbox, done
        #: None in a child, where all runs in place.
        self._run_isolated = run_isolated
        self.running: dict[str, JobContext] = {}

    def run_sync(self, lease: Lease) -> bool:
        """Run the handler of a lease in this thread; False if the attempt was given up meanwhile: this is a ghost."""
        ctx, found = self._begin(lease)
        ctx.thread_id = threading.get_ident()
        try:
            with self._span(ctx):
                verdict: Verdict | Written | None = self._run(ctx, lease, found)
        except BaseException as error:  # noqa: BLE001 - boundary: whatever user code raises is a verdict
            verdict = _judge(error, ctx)
        ctx.leave_thread()
        return self._end(lease, ctx, verdict)

    def _run(self, ctx: JobContext, lease: Lease, found: Handler | None) -> Verdict | Written | None:
        if found is None:
            return _unknown(lease)
        if self._run_isolated is not None and is_isolated(lease, found):
            return self._run_isolated(ctx, lease, found)
        if found.is_transactional:
            run = partial(_run_in_place, ctx, found)
            return run_in_transaction(run, ctx, lease, self.worker_id, self._outbox)
        return _run_in_place(ctx, found)

    async def run_async(self, lease: Lease) -> bool:
        """Run the handler of a lease on this event loop; False as ``run_sync``."""
        ctx, found = self._begin(lease)
        task = asyncio.current_task()
        if task is not None:
            ctx.bind_task(asyncio.get_running_loop(), task)
        try:
            if found is None:
                verdict: Verdict | None = _unknown(lease)
            else:
                with self._span(ctx):
                    async with asyncio.timeout(ctx.timeout_s):
                        verdict = _verdict_of(await found.run(ctx), ctx)
        except TimeoutError as error:
            verdict = _judge(Stopped("timeout") if ctx.should_stop() == "timeout" else error, ctx)
        except BaseException as error:  # noqa: BLE001 - boundary: whatever user code raises is a verdict
            verdict = _judge(error, ctx)
        return self._end(lease, ctx, verdict)

    def give_up(self, lease: Lease) -> bool:
        """End an attempt that was told to stop and does not; False if it has just ended by itself.

        Whatever its handler still does or returns is dropped from here on.
        """
        ctx = self.running.pop(lease.token, None)
        if ctx is None:
            return False
        if ctx.stop_reason == "cancelled":
            verdict: Verdict = Cancelled("cancelled on request; the handler did not stop when it was told to")
        else:
            verdict = Failed(f"timeout: the handler did not end within {ctx.timeout_s} s, nor when it was told to")
        ran_ms = round((time.monotonic() - ctx.started) * 1000, 3)
        self._done(lease, Ending.of(lease, verdict, self.worker_id, ran_ms))
        return True

    def _begin(self, lease: Lease) -> tuple[JobContext, Handler | None]:
        found = find_handler(lease.job_type)
        ctx = JobContext(
            job_id=lease.job_id,
            token=lease.token,
            queue_id=lease.queue_id,
            job_type=lease.job_type,
            attempt=lease.attempt_count + 1,
            fencing_number=lease.fencing_number,
            trace_id=lease.trace_id,
            payload_json=lease.payload_json,
            timeout_s=_shorter(lease.timeout_s, found.timeout_s if found else None),
            outbox=self._outbox,
            project_id=lease.project_id,
        )
        self.running[lease.token] = ctx
        logs.current_job.set(ctx)
        return ctx, found

    def _end(self, lease: Lease, ctx: JobContext, verdict: Verdict | Written | None) -> bool:
        if self.running.pop(lease.token, None) is None:
            return False
        logs.current_job.set(None)
        self._leave_connection()
        if verdict is None:
            self._done(lease, None)
            return True
        ran_ms = round((time.monotonic() - ctx.started) * 1000, 3)
        written = verdict if isinstance(verdict, Written) else None
        ending = Ending.of(lease, verdict.verdict if isinstance(verdict, Written) else verdict, self.worker_id, ran_ms)
        self._done(lease, ending._replace(written=written))
        return True

    def _span(self, ctx: JobContext) -> contextlib.AbstractContextManager[Any]:
        """What tracing sees of the attempt. A child opens none: its worker has."""
        if not settings.TRACING or self._run_isolated is None:
            return contextlib.nullcontext()
        facts: dict[str, str | int] = {
            "punctual.job.id": ctx.job_id,
            "punctual.queue.id": ctx.queue_id,
            "punctual.job.attempt": ctx.attempt,
        }
        return tracing.attempt(ctx.trace_id, ctx.job_type, facts)

    def _leave_connection(self) -> None:
        """Behind each handler that used the database: what it left of the connection is looked at."""
        if has_open_connection():
            close_old_connections()


def is_isolated(lease: Lease, found: Handler | None) -> bool:
    """Does this attempt run in a process of its own? Also if one before it was lost with its process (ADR 25)."""
    is_suspect = lease.lost_count > 0 and settings.WORKER_ISOLATE_LOST
    return found is not None and (found.isolation == "process" or is_suspect)


def _run_in_place(ctx: JobContext, found: Handler) -> Verdict | None:
    return _verdict_of(found.run(ctx), ctx)


def _verdict_of(result: Any, ctx: JobContext) -> Verdict | None:
    if ctx.stop_reason == "lost":
        return None
    if result is None:
        return _NOTHING
    try:
        return Succeeded(ctx.scrub_json(json_gate.encode(result)))
    except json_gate.Unstorable as error:
        return Failed(f"The handler returned a result that can not be stored: it {error}.")


def _judge(error: BaseException, ctx: JobContext) -> Verdict | None:
    reason = ctx.should_stop()
    if reason == "lost" or isinstance(error, LeaseLost):
        return None
    with contextlib.suppress(BaseException):  # reading an error may run user code, which must not cost the verdict
        verdict = _asked_for(error, reason, ctx)
        if verdict is not None:
            return verdict
    # After an interruption any error is taken as its consequence: the job goes back rather than losing an attempt.
    return Interrupted() if reason == "interrupted" else Failed(_summary(error, ctx), _stack(error, ctx))


def _asked_for(error: BaseException, reason: StopReason | None, ctx: JobContext) -> Verdict | None:
    text = _clean(str(error), MAX_ERROR_CHARS, ctx)
    match error:
        case BadPayload():
            return Failed(text, is_final=True)
        case Snooze():
            return Snoozed(float(error.delay_s))
        case RetryAfter():
            return Failed(text or "asked to retry later", None, float(error.delay_s))
        case Permanent():
            return Failed(text or "failed for good", is_final=True)
        case Discard():
            return Discarded(text or "discarded by the handler")
        case Cancel():
            return Cancelled(text or "cancelled by the handler")
        case Stopped() | asyncio.CancelledError() if reason is not None:
            return _stopped(reason, ctx)
    return None


def _stopped(reason: StopReason, ctx: JobContext) -> Verdict | None:
    if reason == "cancelled":
        return Cancelled("cancelled on request")
    if reason == "timeout":
        return Failed(f"timeout: the handler did not end within {ctx.timeout_s} s")
    return Interrupted() if reason == "interrupted" else None


def _shorter(one: float | None, other: float | None) -> float | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def _unknown(lease: Lease) -> Verdict:
    return Failed(f"No handler for job type {lease.job_type!r} in this worker.")


def _summary(error: BaseException, ctx: JobContext) -> str:
    with contextlib.suppress(BaseException):
        return _clean(f"{type(error).__name__}: {error}", MAX_ERROR_CHARS, ctx)
    return type(error).__name__


def _stack(error: BaseException, ctx: JobContext) -> str:
    with contextlib.suppress(BaseException):
        return _clean("".join(traceback.format_exception(error)), MAX_STACK_CHARS, ctx)
    return ""


def _clean(text: str, limit: int, ctx: JobContext) -> str:
    """Cut first: an error may be megabytes long, and looking for secrets in them would hold the interpreter.

    Then cut again: where the first cut went through a secret, the halves are gone too.
    """
    if ctx.has_secrets:
        text = ctx.scrub(storable(text, 4 * limit))
    return logs.redact(storable(text, limit))
