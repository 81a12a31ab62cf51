"""One attempt in a child: the seat's thread hands it over, takes what is said, and says how it ended."""

from __future__ import annotations

import contextlib
import signal
import threading
import time

from django.conf import settings

from jobs.decisions import Failed, Snoozed, Verdict
from jobs.handlers.base import JobContext, Outbox, Stopped, StopReason
from jobs.handlers.registry import Handler
from jobs.lease import Lease, Written
from jobs.lifecycle.reap import is_poison
from jobs.worker.isolation.crew import GONE_LIMIT_S, Child, Crew, NoChild
from jobs.worker.isolation.wire import Message, unpacked
from scheduler_project.lib import logs

log = logs.get(__name__)

#: No process could be had: the job comes back so much later, and no attempt is used.
COME_BACK_S = 5.0


class Remote:
    """What the worker holds of a handler in a child. Nothing once it is let go: the child has another job then."""

    def __init__(self, child: Child) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = child

    def stop(self, reason: StopReason) -> None:
        """Ask it to stop."""
        self._send(stop=reason)

    def force(self, reason: StopReason) -> None:
        """Throw an exception into it."""
        self._send(force=reason)

    def kill(self) -> None:
        """End it."""
        with self._lock:
            if self._child is not None:
                self._child.kill()

    def let_go(self) -> None:
        """The attempt is over."""
        with self._lock:
            self._child = None

    def _send(self, **message: StopReason) -> None:
        with self._lock, contextlib.suppress(OSError):
            if self._child is not None:
                self._child.wire.send(**message)


class Isolated:
    """Runs attempts in children."""

    def __init__(self, crew: Crew, outbox: Outbox, worker_id: str) -> None:
        self._crew, self._outbox, self._worker_id = crew, outbox, worker_id

    def run(self, ctx: JobContext, lease: Lease, found: Handler) -> Verdict | Written | None:
        """One attempt; None if its lease was lost.

        Raises:
            Stopped: it was told to stop, and was killed because it did not.
        """
        child = self._take(ctx)
        if child is None:
            return Snoozed(COME_BACK_S)
        remote, end, is_clean = Remote(child), None, False
        try:
            if ctx.stop_reason is not None:
                raise Stopped(ctx.stop_reason)
            ctx.bind_remote(remote)
            with contextlib.suppress(OSError):
                child.wire.send(lease=lease, memory_mb=_memory_mb(found), worker_id=self._worker_id)
            end = self._listen(ctx, child)
            is_clean = end is not None and end["is_clean"]
        finally:
            ctx.bind_remote(None)
            remote.let_go()
            is_clean = is_clean and ctx.stop_reason is None
            if not is_clean:
                child.kill()
            self._crew.give_back(child, is_clean=is_clean)
        if end is not None:
            return _read(end)
        return _died(ctx, lease, child)

    def _take(self, ctx: JobContext) -> Child | None:
        ctx.is_waiting = True
        try:
            return self._crew.take()
        except NoChild as error:
            log.error("no_child", error=str(error))
            return None
        finally:
            ctx.started, ctx.is_waiting = time.monotonic(), False

    def _listen(self, ctx: JobContext, child: Child) -> Message | None:
        """Take what the handler says until its end; None if the child died before."""
        while (message := child.wire.receive()) is not None:
            if "log" in message:
                self._outbox.log(ctx, *message["log"])
            elif "progress" in message:
                self._outbox.progress(ctx, *message["progress"])
            else:
                return message
        return None


def _read(end: Message) -> Verdict | Written | None:
    if end["end"] is None:
        return None
    verdict, written = unpacked(end["end"]), end["written"]
    if written is None:
        return verdict
    return Written(verdict, written["status"], frozenset((project, name) for project, name in written["open_circuits"]))


def _memory_mb(found: Handler) -> int:
    return settings.WORKER_PROCESS_MEMORY_MB if found.memory_mb is None else found.memory_mb


def _died(ctx: JobContext, lease: Lease, child: Child) -> Verdict | None:
    reason = ctx.should_stop()
    if reason is not None:
        raise Stopped(reason)
    child.is_gone.wait(GONE_LIMIT_S)
    log.warning("child_died", pid=child.pid, exit_code=child.code)
    error = f"ProcessDied: the handler's process {_ending_of(child.code)}"
    return Failed(error, is_crash=True, is_poison=is_poison(lease.lost_count))


def _ending_of(code: int | None) -> str:
    if code is None:
        return "ended, and nobody knows how"
    if code >= 0:
        return f"ended with exit code {code} before the handler returned"
    name = signal.Signals(-code).name if -code in signal.Signals._value2member_map_ else f"signal {-code}"
    hint = "; if nobody did that, the system was out of memory" if -code == signal.SIGKILL else ""
    return f"was killed by {name}{hint}"
