"""How queues are now, as the leader counted them last: for autoscalers and /metrics. No job is counted here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Max, Sum

from jobs.models import WHOLE_PROJECT, JobStat, QueueStat
from queues.models import Queue
from scheduler_project.lib.sql import database_now

#: Rates are taken over this and the last whole minute.
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class QueueNow:
    """One queue at ``as_of``; rates are per second over the last one to two minutes.

    ``as_of`` is None for a queue that no leader has counted yet, and its counts are 0 then.
    """

    queue_id: UUID
    project_id: UUID
    name: str
    path: str
    is_paused: bool
    limit: int | None
    ready: int = 0
    scheduled: int = 0
    claimed: int = 0
    running: int = 0
    dead_letters: int = 0
    is_capped: bool = False
    oldest_age_s: float | None = None
    arrivals_per_s: float = 0.0
    completions_per_s: float = 0.0
    as_of: datetime | None = None

    @property
    def capacity(self) -> int | None:
        """Jobs that may begin now under the queue's limit; None without one."""
        return None if self.limit is None else max(0, self.limit - self.claimed - self.running)


def queues_now(project_ids: Sequence[UUID] | None) -> list[QueueNow]:
    """The live queues of these projects (None: of all), by path. Three queries on small tables, however many jobs."""
    found = Queue.objects.filter(deleted_at=None, project__deleted_at=None)
    stats, rates = QueueStat.objects.all(), JobStat.objects.filter(grain="minute")
    if project_ids is not None:
        found = found.filter(project_id__in=project_ids)
        stats, rates = stats.filter(project_id__in=project_ids), rates.filter(project_id__in=project_ids)
    now = database_now()
    since = now.replace(second=0, microsecond=0) - _MINUTE
    rows = rates.filter(at__gte=since).values("queue_id").annotate(n=Sum("created"), done=Sum("completed"))
    done = {row["queue_id"]: (row["n"], row["done"]) for row in rows.order_by()}
    counted = {stat.queue_id: stat for stat in stats}
    names = found.values_list(
        "id", "project_id", "name", "project__slug", "project__organization__slug", "is_paused", "max_concurrency"
    )
    span_s = (now - since).total_seconds()
    queues = [_queue(row, counted.get(row[0]), done.get(row[0], (0, 0)), now, span_s) for row in names]
    return sorted(queues, key=lambda queue: queue.path)


def _queue(row: Sequence[Any], stat: QueueStat | None, done: tuple[int, int], now: datetime, span_s: float) -> QueueNow:
    id_, project_id, name, project, organization, is_paused, limit = row
    fixed = (id_, project_id, name, f"{organization}/{project}/{name}", is_paused, limit)
    arrivals, completions = (round(count / span_s, 3) for count in done)
    if stat is None:
        return QueueNow(*fixed, arrivals_per_s=arrivals, completions_per_s=completions)
    oldest = stat.oldest_run_at
    return QueueNow(
        *fixed, stat.ready, stat.scheduled, stat.claimed, stat.running, stat.dead_letters, stat.is_capped,
        None if oldest is None else round(max(0.0, (now - oldest).total_seconds()), 3),
        arrivals, completions, stat.as_of,
    )  # fmt: skip


def counted_age_s() -> float | None:
    """How old the youngest count is, in seconds: more than a few say that no leader is at work. None: never counted."""
    latest = QueueStat.objects.aggregate(latest=Max("as_of"))["latest"]
    return None if latest is None else max(0.0, (database_now() - latest).total_seconds())


def totals() -> dict[tuple[UUID, str], JobStat]:
    """Everything ever done, by queue and job type."""
    return {
        (row.queue_id, row.job_type): row for row in JobStat.objects.filter(grain="all").exclude(queue_id=WHOLE_PROJECT)
    }


def paths_of(queue_ids: Iterable[str]) -> dict[str, str]:
    """organization/project/queue for each id, deleted ones too."""
    rows = Queue.objects.filter(id__in=list(queue_ids))
    names = rows.values_list("id", "project__organization__slug", "project__slug", "name")
    return {str(id_): f"{organization}/{project}/{name}" for id_, organization, project, name in names}
