"""Queues whose work waits, and who could do it: what the doctor and /readyz ask. Reads one job of each queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.models import Job, Worker
from jobs.selectors.dashboard import serves
from jobs.selectors.explain import LEADER_SILENT_S
from queues.models import Queue
from scheduler_project.lib.sql import database_now

SILENT = timedelta(seconds=LEADER_SILENT_S)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queue with jobs that could be claimed.

    Attributes:
        oldest_run_at: when the job that would be claimed first was due.
        has_circuit: that job may wait for its target instead of for a worker.
        workers: live ones that serve the queue.
    """

    path: str
    is_paused: bool
    oldest_run_at: datetime
    has_circuit: bool
    workers: int


def waiting_queues(*, limit: int) -> list[Waiting]:
    """Up to ``limit`` queues with claimable jobs, those whose next job waits longest first."""
    fronts = sorted(Job.objects.all().front_of_queues(), key=lambda front: front[1])
    queues = Queue.objects.filter(project__deleted_at=None).select_related("project__organization")
    rows = queues.in_bulk([queue_id for queue_id, _, _ in fronts])
    workers = _alive()
    found = [
        _waiting(rows[queue_id], run_at, has_circuit, workers)
        for queue_id, run_at, has_circuit in fronts
        if queue_id in rows
    ]
    return found[:limit]


def _alive() -> Sequence[Worker]:
    return list(Worker.objects.filter(status=Worker.Status.ACTIVE, last_seen_at__gte=database_now() - SILENT))


def _waiting(row: Queue, run_at: datetime, has_circuit: bool, workers: Sequence[Worker]) -> Waiting:
    path = f"{row.project.organization.slug}/{row.project.slug}/{row.name}"
    ours = [w for w in workers if w.project_id in (None, row.project_id) and serves(w, path)]
    return Waiting(path, row.is_paused, run_at, has_circuit, len(ours))
