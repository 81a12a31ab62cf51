"""What the page of one queue shows of its jobs, from the ends of indexes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from jobs.models import Job
from jobs.selectors.dashboard import QueueNow
from jobs.states import JobStatus
from queues.models import Queue

MOST_NEXT, MOST_SEEN = 10, 2_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job in line and what it waits for."""

    job: Job
    reason: str


def next_up(queue: Queue, row: QueueNow, now: datetime) -> list[Waiting]:
    """The ready jobs in the order of claims."""
    ready = Job.objects.filter(queue=queue, status=JobStatus.QUEUED.value).without_payload()
    jobs = ready.order_by("-priority", "run_at", "id")[:MOST_NEXT]
    reason = _blocker(queue, row)
    return [Waiting(job, reason or ("next" if not place else f"{place} ahead")) for place, job in enumerate(jobs)]


def types_of(queue_id: UUID) -> list[tuple[str, Counter[str]]]:
    """The newest jobs of a queue, at most MOST_SEEN, by type and status; the most frequent type first."""
    newest = Job.objects.filter(queue_id=queue_id).order_by("-id").values_list("job_type", "status")[:MOST_SEEN]
    found: dict[str, Counter[str]] = {}
    for job_type, status in newest:
        found.setdefault(job_type, Counter())[status] += 1
    return sorted(found.items(), key=lambda item: -item[1].total())[:20]


def _blocker(queue: Queue, row: QueueNow) -> str:
    if queue.is_paused:
        return "the queue is paused"
    if not row.has_worker:
        return "no live worker serves it"
    if queue.max_concurrency is not None and row.in_flight >= queue.max_concurrency:
        return f"all {queue.max_concurrency} slots are taken"
    return ""
