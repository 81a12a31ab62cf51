"""What the page of one queue shows of its jobs, from the ends of indexes."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.models import Job
from jobs.selectors.dashboard import QueueNow
from jobs.states import JobStatus
from queues.models import Queue

MOST_NEXT = 10


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job in line and what it waits for."""

    job: Job
    reason: str


def next_up(queue: Queue, row: QueueNow) -> list[Waiting]:
    """The ready jobs in the order of claims."""
    ready = Job.objects.filter(queue=queue, status=JobStatus.QUEUED.value).without_payload()
    jobs = ready.order_by("-priority", "run_at", "id")[:MOST_NEXT]
    reason = _blocker(queue, row)
    return [Waiting(job, reason or ("next" if not place else f"{place} ahead")) for place, job in enumerate(jobs)]


def _blocker(queue: Queue, row: QueueNow) -> str:
    if queue.is_paused:
        return "the queue is paused"
    if not row.has_worker:
        return "no live worker serves it"
    if queue.max_concurrency is not None and row.in_flight >= queue.max_concurrency:
        return f"all {queue.max_concurrency} slots are taken"
    return ""
