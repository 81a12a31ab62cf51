"""Waiting jobs, run through their real life cycle by the test itself: claimed, run, settled, in the test's database."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from asgiref.sync import async_to_sync

from jobs.handlers.registry import find_handler, known_types, list_handlers
from jobs.lease import Ending, Lease
from jobs.lifecycle.claim import Claim, KnownTypes, Want, claim_jobs, ready_queues
from jobs.lifecycle.exchange import Handover, exchange
from jobs.lifecycle.promote import promote_due
from jobs.models import Job
from jobs.worker.executor import Executor
from jobs.worker.outbox import Outbox
from queues.models import Queue
from queues.selectors import find_queue_by_path
from scheduler_project.lib.ids import uuid7


class Ran(NamedTuple):
    """An attempt that was made, and what became of its job."""

    job_id: UUID
    job_type: str
    attempt: int
    status: str
    error: str | None
    result: Any


class _InTest(Executor):
    """Runs on the test's own connection, which may be inside a transaction and must stay as it is."""

    def _leave_connection(self) -> None:
        pass


class StillBusy(AssertionError):
    """There were more jobs than ``drain`` may run: they seem to submit each other without end."""


def drain(queue: Queue | str | None = None, *, max_jobs: int = 1_000) -> list[Ran]:
    """Run what waits in a queue, or in all queues, until nothing is due; the attempts in their order.

    Jobs that the jobs submit are run too. What waits for its time does not: a retry, or a job of tomorrow; let
    ``time_passes`` and drain again. Runs in this thread and on this connection, so it sees what the test wrote and
    works inside its transaction. Job types without a handler here stay queued, as they would with real workers.

    Args:
        queue: itself, or its path ``organization/project/queue``.
        max_jobs: at most so many attempts.

    Raises:
        StillBusy: after ``max_jobs`` attempts there was still work.
    """
    list_handlers()
    wanted = None if queue is None else [str(_found(queue).pk)]
    types = KnownTypes.of(*known_types())
    worker_id = str(uuid7())
    ran: list[Ran] = []
    while lease := _next_of(worker_id, wanted, types):
        if len(ran) == max_jobs:
            raise StillBusy(f"{max_jobs} attempts were made and there is still work, next a {lease.job_type} job")
        ran.append(_run(worker_id, lease))
    return ran


def _found(queue: Queue | str) -> Queue:
    if isinstance(queue, Queue):
        return queue
    found = find_queue_by_path(queue)
    if found is None:
        raise LookupError(f"There is no queue {queue!r}; name it as organization/project/queue.")
    return found


def _next_of(worker_id: str, wanted: Sequence[str] | None, types: KnownTypes) -> Lease | None:
    promote_due(limit=1_000)
    for queue_id, *_ in ready_queues(wanted, types):
        leases = claim_jobs(Claim(worker_id, [Want(str(queue_id), 1)], types, starts=1))
        if leases:
            return leases[0]
    return None


def _run(worker_id: str, lease: Lease) -> Ran:
    outbox = Outbox()
    endings: list[Ending] = []

    def done(_lease: Lease, ending: Ending | None) -> None:
        endings.extend([ending] if ending is not None and ending.written is None else [])

    executor = _InTest(worker_id, outbox, done)
    found = find_handler(lease.job_type)
    if found is not None and found.is_async:
        async_to_sync(executor.run_async)(lease)
    else:
        executor.run_sync(lease)
    lines, progress = outbox.empty()
    exchange(Handover(endings=endings, lines=lines, progress=progress, now=time.monotonic()))
    job = Job.objects.get(pk=lease.job_id)
    return Ran(job.pk, job.job_type, lease.attempt, job.status, job.error_message, job.result)
