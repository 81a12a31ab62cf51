"""Parts of a worker, put together without a database: leases, handlers of the test's own, a place for the endings."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from jobs.handlers import registry
from jobs.handlers.base import JobContext
from jobs.lease import Ending, Lease
from jobs.worker.executor import Executor
from jobs.worker.outbox import Outbox
from scheduler_project.lib.ids import uuid7
from tests.waiting import wait_until

F = TypeVar("F", bound=Callable[..., Any])
_numbers = itertools.count(1)


class InPlace(futures.Executor):
    """Does at once, in the caller's thread and with its connection, what it is given."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """The result is there when this returns."""
        done: futures.Future[Any] = futures.Future()
        try:
            done.set_result(function(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - boundary: as an executor does
            done.set_exception(error)
        return done


def lease_of(job_type: str, payload: Any = None, *, is_running: bool = True, attempt_count: int = 0) -> Lease:
    """A lease as a claim would have returned it."""
    number = next(_numbers)
    text = json.dumps({} if payload is None else payload)
    at = "2026-01-01 00:00:00+00"
    return Lease(
        f"job-{number}", f"token-{number}", "queue", job_type, text, attempt_count, number, 60, at, f"trace-{number}",
        is_running, 0, at, number,
    )  # fmt: skip


def context_of(
    lease: Lease | None = None, *, timeout_s: float | None = None, outbox: Outbox | None = None
) -> JobContext:
    """What a handler of the lease would get."""
    lease = lease or lease_of("x")
    return JobContext(
        job_id=lease.job_id, token=lease.token, queue_id=lease.queue_id, job_type=lease.job_type, attempt=1,
        fencing_number=lease.fencing_number, trace_id=lease.trace_id, payload_json=lease.payload_json,
        timeout_s=timeout_s, outbox=Outbox() if outbox is None else outbox, project_id=lease.project_id,
    )  # fmt: skip


class Endings:
    """Takes what the executor hands over."""

    def __init__(self) -> None:
        self.by_token: dict[str, Ending | None] = {}
        self.order: list[str] = []

    def __call__(self, lease: Lease, ending: Ending | None) -> None:
        assert lease.token not in self.by_token, "an attempt ended twice"
        self.by_token[lease.token] = ending
        self.order.append(lease.job_id)

    def of(self, lease: Lease) -> Ending | None:
        """The ending of an attempt that is over; None if its result was dropped."""
        wait_until(lambda: lease.token in self.by_token, timeout_s=10, what=f"the end of {lease.job_type}")
        return self.by_token[lease.token]

    def verdict(self, lease: Lease) -> Any:
        """The verdict of an attempt that was not dropped."""
        ending = self.of(lease)
        assert ending is not None
        return ending.verdict


class Bench:
    """An executor with handlers of the test's own."""

    def __init__(self) -> None:
        self.endings, self.outbox = Endings(), Outbox()
        self.worker_id = str(uuid7())
        self.executor = Executor(self.worker_id, self.outbox, self.endings)

    def handle(self, job_type: str, function: Callable[[JobContext], Any], **options: Any) -> None:
        """Register a handler."""
        registry.handler(job_type, **options)(function)

    def context(self, lease: Lease) -> JobContext:
        """The context of an attempt, once it runs."""
        wait_until(lambda: lease.token in self.executor.running, timeout_s=10, what=f"{lease.job_type} runs")
        return self.executor.running[lease.token]


class Gate:
    """A handler that stays until it is let go."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.entered: list[str] = []
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def __call__(self, ctx: JobContext) -> None:
        with self._lock:
            self.entered.append(ctx.job_id)
            self.running += 1
            self.most = max(self.most, self.running)
        assert self._open.wait(20)
        with self._lock:
            self.running -= 1

    def open(self) -> None:
        """Let all go, and all that come."""
        self._open.set()


@contextmanager
def own_handlers() -> Iterator[Bench]:
    """A bench whose handlers are gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_exact", {})
        patch.setattr(registry, "_patterns", {})
        yield Bench()
