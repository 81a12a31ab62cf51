"""How queues are now, as the leader counted them last: for autoscalers and /metrics. No job is counted here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Max

from jobs.models import WHOLE_PROJECT, Job, JobStat, QueueStat
from queues.models import Queue
from scheduler_project.lib.sql import database_now


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
    """The live queues of these projects (None: of all), by path. One statement on small tables, however many jobs."""
    return [QueueNow(*row) for row in Job.objects.queues_now(project_ids)]


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
