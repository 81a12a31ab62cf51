"""Sees to it that what was told to stop stops: by itself, then by force, and at last without it.

A handler in a process of its own has an exception thrown into it, and is killed if that does not help. One in a thread
can not be killed. Past its limit of time, or some time after it was asked to cancel, an exception is thrown into it; if
that does not help either, its attempt ends without it and its seat goes to another job. What remains of it, a *ghost*,
can do no harm to the job: its lease is over. It does hold a thread, so a worker with as many ghosts as seats drains and
ends, for its supervisor to start a fresh one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jobs import metrics
from jobs.handlers.base import JobContext, Stopped
from jobs.lease import Lease
from jobs.worker.executor import Executor
from jobs.worker.pool import Pool
from scheduler_project.lib import logs

log = logs.get(__name__)

LOOK_EVERY_S = 0.2
#: After a timeout: so long a handler may take to notice, and so long again after the exception.
NOTICE_S = 1.0


class _TimeIsUp(Stopped):
    def __init__(self) -> None:
        super().__init__("timeout")


class _Cancelled(Stopped):
    def __init__(self) -> None:
        super().__init__("cancelled")


class Watchdog:
    """One thread.

    Args:
        cancel_grace_s: how long a handler may take to obey a cancel.
        lease_of: the lease of a token that is in hand.
        on_too_many: called once there are as many ghosts as seats.
    """

    def __init__(
        self,
        executor: Executor,
        pool: Pool,
        seats: int,
        cancel_grace_s: float,
        lease_of: Callable[[str], Lease | None],
        on_too_many: Callable[[], None],
    ) -> None:
        self._executor, self._pool, self._seats = executor, pool, seats
        self._cancel_grace_s, self._lease_of, self._on_too_many = cancel_grace_s, lease_of, on_too_many
        #: Token -> when it was first seen to be due to stop, and whether force was used.
        self._due: dict[str, tuple[float, bool]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            try:
                self.look()
            except Exception:  # boundary: a fault of ours must not leave hung handlers alone
                log.exception("watchdog_failed")

    def look(self) -> None:
        """Look once at all that run."""
        running = list(self._executor.running.items())
        now = time.monotonic()
        stopping = {token: ctx for token, ctx in running if _must_end(ctx)}
        self._due = {token: self._due.get(token, (now, False)) for token in stopping}
        for token, ctx in stopping.items():
            since, is_forced = self._due[token]
            grace_s = self._cancel_grace_s if ctx.stop_reason == "cancelled" else NOTICE_S
            if not is_forced and now - since >= grace_s:
                self._due[token] = (since, True)
                ctx.force(_TimeIsUp if ctx.stop_reason == "timeout" else _Cancelled)
            elif is_forced and now - since >= grace_s + NOTICE_S:
                self._give_up(token, ctx)
            elif now - since < LOOK_EVERY_S:
                ctx.wake()

    def _give_up(self, token: str, ctx: JobContext) -> None:
        if ctx.is_remote:
            log.warning("handler_killed", job_id=ctx.job_id, job_type=ctx.job_type, reason=ctx.stop_reason)
            ctx.kill()  # its seat hears of it, and ends the attempt
            return
        lease = self._lease_of(token)
        if lease is None or not self._executor.give_up(lease):
            return
        self._pool.abandon(lease)
        metrics.GHOSTS.inc()
        log.error("handler_given_up", job_id=ctx.job_id, job_type=ctx.job_type, reason=ctx.stop_reason,
                  ghosts=self._pool.ghosts)  # fmt: skip
        if self._pool.ghosts >= self._seats:
            log.error("too_many_ghosts", ghosts=self._pool.ghosts, seats=self._seats)
            self._on_too_many()


def _must_end(ctx: JobContext) -> bool:
    """A handler without a lease is left to itself, unless it can be killed."""
    reason = ctx.should_stop()
    return reason in ("timeout", "cancelled") or (reason == "lost" and ctx.is_remote)
