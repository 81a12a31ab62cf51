"""The contract between the engine and user work: what a handler gets, and what it may say."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, Protocol

from jobs.handlers.facts import ProjectFacts
from scheduler_project.lib import json_gate, sealed_json, secretbox
from scheduler_project.lib.scrub import Scrubber

StopReason = Literal["cancelled", "interrupted", "lost", "timeout"]


class Snooze(Exception):
    """Come back in ``delay_s`` seconds; no attempt is used."""

    def __init__(self, delay_s: float) -> None:
        super().__init__(f"snoozed for {delay_s} s")
        # Here, where a wrong value is the handler's own error; later it would spoil a whole batch of endings.
        self.delay_s = float(delay_s)


class RetryAfter(Exception):
    """Failed; try again in ``delay_s`` seconds instead of what the policy says, if attempts remain."""

    def __init__(self, delay_s: float, reason: str = "") -> None:
        super().__init__(reason or f"asked to retry after {delay_s} s")
        self.delay_s = float(delay_s)


class Discard(Exception):
    """Failed for good: no retry, no dead letter."""


class Permanent(Exception):
    """Failed, and another attempt would fail alike: the job goes to the dead letters at once."""


class Cancel(Exception):
    """Stop here; the job ends as cancelled."""


class BadPayload(Exception):
    """The payload is not what the handler declares, or its secrets can not be opened: another attempt is useless."""


class Stopped(Exception):
    """Raised inside a handler, by ``ctx.check`` and ``ctx.sleep``, when it should stop: ``reason`` says why."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(f"stopped: {reason}")
        self.reason = reason


class CleanUp(NamedTuple):
    """One step of a clean-up.

    Attributes:
        moved: jobs that went to the archive.
        after: id of the job looked at last, where the next step goes on; None when nothing is left to look at.
        until: the walk goes no further than this id.
        kept_days: how old jobs had to be.
    """

    moved: int
    after: str | None
    until: str
    kept_days: int


class Outbox(Protocol):
    """Where a context's log lines and progress go; the worker's side of the contract."""

    def log(self, ctx: JobContext, level: str, message: str) -> None:
        """Take a line for the job's log."""

    def progress(self, ctx: JobContext, percent: int, note: str | None) -> None:
        """Take the job's progress."""

    def parent_results(self, ctx: JobContext) -> dict[str, Any]:
        """Read what the jobs this one waited for have returned."""

    def clean_up(self, ctx: JobContext, older_than_days: int | None, after: str | None) -> CleanUp:
        """Move the next ended jobs of the job's own project to the archive."""

    def project_facts(self, ctx: JobContext) -> ProjectFacts:
        """Read what is set for the job's project, or take what was read a moment ago."""


class Remote(Protocol):
    """A handler that runs in a process of its own."""

    def stop(self, reason: StopReason) -> None:
        """Ask it to stop."""

    def force(self, reason: StopReason) -> None:
        """Throw an exception into it."""

    def kill(self) -> None:
        """End its process."""


class JobContext:
    """What a handler knows of its job.

    Attributes:
        attempt: 1 for the first.
        fencing_number: higher for every claim of this job; hand it to whatever must refuse a ghost.
        timeout_s: seconds the handler may run, None without limit.
    """

    __slots__ = (
        "_is_forced", "_outbox", "_payload", "_payload_json", "_remote", "_scrubber", "_stop_event", "_task", "attempt",
        "fencing_number", "is_waiting", "job_id", "job_type", "project_id", "queue_id", "started", "stop_reason",
        "thread_id", "timeout_s", "token", "trace_id",
    )  # fmt: skip
    _making_event = threading.Lock()

    def __init__(  # noqa: PLR0913 - a record of what the worker knows
        self,
        *,
        job_id: str,
        token: str,
        queue_id: str,
        job_type: str,
        attempt: int,
        fencing_number: int,
        trace_id: str,
        payload_json: str,
        timeout_s: float | None,
        outbox: Outbox,
        project_id: str = "",
    ) -> None:
        self.project_id = project_id
        self.job_id, self.token, self.queue_id, self.job_type = job_id, token, queue_id, job_type
        self.attempt, self.fencing_number, self.trace_id = attempt, fencing_number, trace_id
        self.timeout_s = timeout_s
        self.started = time.monotonic()
        self.stop_reason: StopReason | None = None
        self._payload_json, self._outbox = payload_json, outbox
        self._payload: Any = self
        self._scrubber: Scrubber | None = None
        self._stop_event: threading.Event | None = None
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        #: Of a handler in a thread.
        self.thread_id: int | None = None
        self._is_forced = False
        self._remote: Remote | None = None
        #: Until there is a process for it, a handler's time does not run.
        self.is_waiting = False

    @property
    def payload(self) -> Any:
        """The job's payload with its secrets in the clear; parsed when first asked for, numbers as they were submitted.

        Raises:
            BadPayload: a secret in it can not be opened with the keys of this process.
        """
        if self._payload is self:
            value = json.loads(self._payload_json)
            self._payload = self._opened(value) if self.has_secrets else value
        return self._payload

    def _opened(self, value: Any) -> Any:
        try:
            opened = sealed_json.opened(value)
        except secretbox.Sealed as error:
            raise BadPayload(f"The payload can not be read: {error}.") from None
        self._scrubber = Scrubber(opened.secrets)
        return opened.value

    @property
    def has_secrets(self) -> bool:
        """Are parts of the payload sealed at rest?"""
        return sealed_json.SIGN in self._payload_json

    def scrub(self, text: str) -> str:
        """The text with the secrets of this job's payload blotted out."""
        return self._scrub(text) if self.has_secrets else text

    def _scrub(self, text: str) -> str:
        with contextlib.suppress(BadPayload):
            _ = self.payload
        return text if self._scrubber is None else self._scrubber(text)

    def scrub_json(self, text: str) -> str:
        """The same for the JSON text of a result."""
        if not self.has_secrets:
            return text
        with contextlib.suppress(BadPayload):
            _ = self.payload
        return text if self._scrubber is None else json_gate.encode(self._scrubber.value(json.loads(text)))

    @property
    def remaining_s(self) -> float | None:
        """Seconds to the deadline, negative when it has passed; None without one."""
        return None if self.timeout_s is None else self.started + self.timeout_s - time.monotonic()

    def log(self, message: str, level: Literal["debug", "info", "warning", "error"] = "info") -> None:
        """Write a line to the job's log. Lines of a lost lease are dropped."""
        self._outbox.log(self, level, self.scrub(str(message)))

    def progress(self, percent: float, note: str | None = None) -> None:
        """Tell how far the work is, 0 to 100."""
        self._outbox.progress(self, int(min(100, max(0, percent))), None if note is None else self.scrub(note))

    def parent_results(self) -> dict[str, Any]:
        """What the jobs this one waited for have returned, by their ids; None for one that did not complete.

        Reads the database: an async handler calls it by ``asyncio.to_thread``.
        """
        return self._outbox.parent_results(self)

    def clean_up(self, *, older_than_days: int | None = None, after: str | None = None) -> CleanUp:
        """Move some ended jobs of this job's project to the archive, once they are past the project's retention.

        Works on the database, in one short statement: call it again with the ``after`` that it returned.

        Args:
            older_than_days: keep jobs longer than the project's retention says; never shorter.
            after: where the step before this one ended.

        Raises:
            Stopped: the lease is lost.
        """
        return self._outbox.clean_up(self, older_than_days, after)

    def project_facts(self) -> ProjectFacts:
        """What is set for the job's project; a change is seen within a few seconds.

        Reads the database now and then: an async handler calls it by ``asyncio.to_thread``.
        """
        return self._outbox.project_facts(self)

    def is_cancelled(self) -> bool:
        """Should the handler stop? True after a cancel, at shutdown, past the deadline or without its lease."""
        return self.should_stop() is not None

    def should_stop(self) -> StopReason | None:
        """Why the handler should stop, None to go on."""
        if self.stop_reason is None and (self.remaining_s or 0.0) < 0 and not self.is_waiting:
            self.stop_reason = "timeout"
        return self.stop_reason

    def check(self) -> None:
        """Raise Stopped if the handler should stop; call it now and then in long loops."""
        if reason := self.should_stop():
            raise Stopped(reason)

    def sleep(self, seconds: float) -> None:
        """Sleep, but raise Stopped as soon as the handler should stop. For handlers in threads."""
        with self._making_event:
            event = self._stop_event = self._stop_event or threading.Event()
        self.check()
        wait_s = seconds if self.remaining_s is None else min(seconds, max(0.0, self.remaining_s))
        event.wait(wait_s)
        self.check()

    # -- the worker's side -------------------------------------------------------------------------------------
    def bind_task(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        """The task an async handler runs in, so that stopping can cancel it."""
        self._task = (loop, task)
        if self.stop_reason is not None:
            task.cancel()

    def bind_remote(self, remote: Remote | None) -> None:
        """The handler runs elsewhere: what is meant for it goes there."""
        self._remote = remote
        if remote is not None and self.stop_reason is not None:
            remote.stop(self.stop_reason)

    @property
    def is_remote(self) -> bool:
        """Does the handler run in a process of its own, which can be killed?"""
        return self._remote is not None

    def kill(self) -> None:
        """End the process of a handler that has one of its own."""
        if (remote := self._remote) is not None:
            remote.kill()

    def stop(self, reason: StopReason) -> None:
        """Ask the handler to stop; the first reason stays. Safe from any thread."""
        if self.stop_reason is not None:
            return  # once: a second cancel would break the clean-up that the first one began
        self.stop_reason = reason
        self.wake()
        self.cancel_task()

    def force(self, kind: type[BaseException]) -> None:
        """Throw an exception into the thread of a sync handler, or cancel the task of an async one again."""
        if (remote := self._remote) is not None:
            remote.force(self.stop_reason or "interrupted")
            return
        if self.thread_id is None and self._task is not None:
            self.cancel_task()
            return
        with self._making_event:
            if self.thread_id is not None:
                self._is_forced = True
                _throw(self.thread_id, kind)

    def leave_thread(self) -> None:
        """The handler is out of its thread: nothing is thrown into it any more, and what was is taken back."""
        ident, self.thread_id = self.thread_id, None
        if ident is None:
            return
        while True:
            try:
                with self._making_event:  # behind this lock nobody throws any more
                    pass
                if self._is_forced:
                    _throw(ident, None)
                return
            except Stopped:
                continue  # it came while we were on our way out

    def wake(self) -> None:
        """End ``ctx.sleep``, whose deadline may have come; it raises what there is to be told."""
        if (remote := self._remote) is not None and self.stop_reason is not None:
            remote.stop(self.stop_reason)
        with self._making_event:
            event = self._stop_event
        if event is not None:
            event.set()

    def cancel_task(self) -> None:
        """Cancel the task of an async handler, once more if it was before. Safe from any thread."""
        if self._task is not None:
            loop, task = self._task
            loop.call_soon_threadsafe(task.cancel)


def _throw(thread_id: int, kind: type[BaseException] | None) -> None:
    raised = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), raised)


SyncHandler = Callable[[JobContext], Any]
AsyncHandler = Callable[[JobContext], Awaitable[Any]]
