"""How much work there is. Finished jobs are never counted here: there is no end to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Count, QuerySet, Value

from dlq.models import DeadLetter
from jobs.models import Job
from jobs.states import JobStatus

DEAD_LETTERS = "dead_letter"
_SHOWN = (JobStatus.QUEUED, JobStatus.SCHEDULED, JobStatus.CLAIMED, JobStatus.RUNNING)


def depths_of(queue_ids: Iterable[UUID]) -> dict[UUID, dict[str, int]]:
    """For each queue the number of its jobs that are queued, scheduled, claimed and running, and of its open letters.

    One statement with an arm for each partial index that can answer from its own entries.
    """
    ids = list(queue_ids)
    jobs = Job.objects.filter(queue_id__in=ids)
    arms = [
        _counted(jobs.filter(status=JobStatus.QUEUED.value)),
        # Apart, because the index of due jobs leaves out those that wait for other jobs.
        _counted(jobs.filter(status=JobStatus.SCHEDULED.value, is_blocked=False)),
        _counted(jobs.filter(status=JobStatus.SCHEDULED.value, is_blocked=True)),
        _counted(jobs.in_flight()),
    ]
    letters = DeadLetter.objects.filter(queue_id__in=ids, resolved=False).values("queue_id")
    dead = letters.annotate(status=Value(DEAD_LETTERS), n=Count("*")).values_list("queue_id", "status", "n")
    depths: dict[UUID, dict[str, int]] = defaultdict(empty_depth)
    for queue_id, status, n in arms[0].union(*arms[1:], dead, all=True):
        depths[queue_id][status] += n
    return depths


def empty_depth() -> dict[str, int]:
    """The depth of a queue without work."""
    return {**{status.value: 0 for status in _SHOWN}, DEAD_LETTERS: 0}


def _counted(jobs: QuerySet[Job]) -> QuerySet[Job, Any]:
    return jobs.order_by().values("queue_id", "status").annotate(n=Count("*")).values_list("queue_id", "status", "n")
