"""What the page of workers shows of those that live, those that left, and of who leads the scheduling.

Our own workers serve everybody: a project sees that they are there and how full they are, but neither the names of
other organizations' queues nor their jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from jobs.models import Job, LeaderTerm, Worker
from jobs.selectors.dashboard import QueueNow, serves
from jobs.selectors.explain import LEADER_SILENT_S
from jobs.selectors.workers import list_alive_workers
from orgs.models import Project
from queues.models import Queue

MOST_ALIVE, MOST_GONE, MOST_RUNNING, MOST_TERMS = 500, 50, 1_000, 10
#: Workers that were lost or left are shown for so long.
REMEMBERED = timedelta(hours=24)
SILENT = timedelta(seconds=LEADER_SILENT_S)


@dataclass(frozen=True, slots=True)
class WorkerNow:
    """A worker as a project sees it.

    ``others`` is how many of its running jobs belong to other projects; ``has_more_queues`` says that it also serves
    queues of other organizations. ``vitals`` is its last heartbeat: active_job_count, cpu_percent, memory_mb.
    """

    worker: Worker
    is_silent: bool
    queues: list[str]
    has_more_queues: bool
    vitals: dict[str, Any] | None = None
    jobs: list[Job] = field(default_factory=list)

    @property
    def used(self) -> int:
        """Its slots in use; the heartbeat may lag behind the jobs that are seen."""
        told = (self.vitals or {}).get("active_job_count", 0)
        return max(int(told), len(self.jobs))

    @property
    def others(self) -> int:
        """Running jobs that are not this project's."""
        return self.used - len(self.jobs)


@dataclass(frozen=True, slots=True)
class Capacity:
    """A queue, and the slots of live workers that serve it; they may serve others too."""

    row: QueueNow
    slots: int
    workers: int


def alive_now(project: Project, now: datetime) -> list[WorkerNow]:
    """The live workers that a project sees, by host, with what they run of it; two statements."""
    rows: list[Any] = list(list_alive_workers(Project.objects.filter(pk=project.pk).values("pk"))[:MOST_ALIVE])
    held = _held(project.pk)
    return [_as_seen(row, project, now, row.latest, held.get(row.pk, [])) for row in rows]


def gone_lately(project: Project, now: datetime, statuses: Sequence[str]) -> list[WorkerNow]:
    """The workers that were lost or left in the last day, the latest first."""
    seen = Q(project=None) | Q(project=project)
    rows = Worker.objects.filter(seen, status__in=statuses, last_seen_at__gte=now - REMEMBERED)
    return [_as_seen(row, project, now, None, []) for row in rows.order_by("-last_seen_at", "id")[:MOST_GONE]]


def capacities(project: Project, rows: Sequence[QueueNow], workers: Sequence[WorkerNow]) -> list[Capacity]:
    """For each queue the slots that serve it; the fullest first."""
    found = []
    for row in rows:
        path = f"{project.organization.slug}/{project.slug}/{row.queue.name}"
        on_it = [w for w in workers if w.worker.status == "active" and not w.is_silent and serves(w.worker, path)]
        found.append(Capacity(row, sum(w.worker.max_concurrency for w in on_it), len(on_it)))
    return sorted(found, key=lambda one: (one.workers > 0, -one.row.depth["queued"], one.row.queue.name))


def newest_terms() -> list[LeaderTerm]:
    """The last terms of the schedulers, the newest first."""
    return list(LeaderTerm.objects.order_by("-id")[:MOST_TERMS])


def leader_now(now: datetime) -> LeaderTerm | None:
    """The term of the scheduler that leads; None if none does."""
    return leader_of(list(LeaderTerm.objects.order_by("-id")[:1]), now)


def leader_of(terms: Sequence[LeaderTerm], now: datetime) -> LeaderTerm | None:
    """The newest term, if it has neither ended nor fallen silent."""
    if not terms or terms[0].ended_at is not None or now - terms[0].renewed_at > SILENT:
        return None
    return terms[0]


def _held(project_id: UUID) -> dict[UUID, list[Job]]:
    queues = Queue.objects.filter(project=project_id).values("pk")
    jobs = Job.objects.in_flight().filter(queue__in=queues).without_payload().order_by("locked_at")
    held: dict[UUID, list[Job]] = defaultdict(list)
    for job in jobs[:MOST_RUNNING]:
        if job.locked_by is not None:
            held[job.locked_by].append(job)
    return held


def _as_seen(
    worker: Worker, project: Project, now: datetime, vitals: dict[str, Any] | None, jobs: list[Job]
) -> WorkerNow:
    own = f"{project.organization.slug}/"
    here = f"{own}{project.slug}/"
    shown = [path.removeprefix(here).removeprefix(own) for path in worker.subscribed_queues if path.startswith(own)]
    is_silent = worker.status in ("active", "draining") and now - worker.last_seen_at > SILENT
    return WorkerNow(worker, is_silent, shown, len(shown) < len(worker.subscribed_queues), vitals, jobs)
