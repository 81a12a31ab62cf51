"""Totals for a dashboard: what is there now, and how fast it went in the last minute. Every count has an end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Q

from jobs.models import Job, JobExecution, Worker
from jobs.selectors.stats import depths_of
from jobs.states import ExecutionStatus, JobStatus
from orgs.access import Actor, project_ids
from queues.models import Queue
from scheduler_project.lib.ids import first_id_at
from scheduler_project.lib.sql import database_now

#: Ended jobs are counted so far, per status.
MOST_ENDED = 10_000
#: Ends of the last minute are counted so far.
MOST_RECENT = 100_000
RECENT = timedelta(seconds=60)
_ENDED = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.CANCELLED)


def system_totals(actor: Actor) -> dict[str, Any]:
    """Jobs per status, queues with their depth, workers, open dead letters and recent rates of what the actor sees."""
    projects = project_ids(actor)
    queues = list(Queue.objects.filter(project_id__in=projects, deleted_at=None).order_by("-id"))
    depths = depths_of([queue.pk for queue in queues])
    total: Counter[str] = Counter()
    for queue in queues:
        total.update(depths[queue.pk])
    dead_letters = total.pop("dead_letter", 0)
    ids = list(Queue.objects.filter(project_id__in=projects).values_list("pk", flat=True))
    jobs = {status: total.get(status, 0) for status in ("scheduled", "queued", "claimed", "running")}
    jobs.update({status.value: _ended(ids, status) for status in _ENDED})
    return {
        "jobs": jobs,
        "jobs_counted_up_to": MOST_ENDED,
        "dead_letters": dead_letters,
        "queues": {"total": len(queues), "paused": sum(queue.is_paused for queue in queues)},
        "queue_depth": [_depth(queue, depths[queue.pk]) for queue in queues],
        "workers": _workers(projects),
        "last_minute": _rates(projects),
    }


def _ended(queue_ids: Sequence[UUID], status: JobStatus) -> int:
    return Job.objects.filter(queue_id__in=queue_ids, status=status.value).order_by()[:MOST_ENDED].count()


def _depth(queue: Queue, depth: dict[str, int]) -> dict[str, Any]:
    return {"queue_id": queue.pk, "name": queue.name, "is_paused": queue.is_paused, **depth}


def _workers(projects: Sequence[UUID]) -> dict[str, int]:
    alive = Worker.objects.filter(status__in=[Worker.Status.ACTIVE, Worker.Status.DRAINING])
    alive = alive.filter(Q(project=None) | Q(project__in=projects))
    counts = dict(alive.values_list("status").annotate(n=Count("*")).order_by())
    return {"active": counts.get("active", 0), "draining": counts.get("draining", 0)}


def _rates(projects: Sequence[UUID]) -> dict[str, Any]:
    """Ends of attempts that were claimed in the last minute: the history's key begins with the time of the claim."""
    recent = JobExecution.objects.filter(id__gte=first_id_at(database_now() - RECENT), project_id__in=projects)
    counts = Counter(recent.order_by().values_list("status", flat=True)[:MOST_RECENT])
    completed = counts.get(ExecutionStatus.COMPLETED, 0)
    seconds = RECENT.total_seconds()
    return {
        "completed": completed,
        "failed": counts.get(ExecutionStatus.FAILED, 0) + counts.get(ExecutionStatus.LOST, 0),
        "completed_per_s": round(completed / seconds, 2),
    }
