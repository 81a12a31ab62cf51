"""How much work there is, and what was done when. Finished jobs are never counted: what they add up to is kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.db.models import Count, F, QuerySet, Sum, Value

from dlq.models import DeadLetter
from jobs.histogram import added, percentile_ms
from jobs.models import WHOLE_PROJECT, Job, JobStat
from jobs.selectors.queue_stats import QueueNow, queues_now
from jobs.states import JobStatus

DEAD_LETTERS = "dead_letter"
RECENT_MINUTES = 15
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


@dataclass(frozen=True, slots=True)
class Point:
    """What was done in one minute, hour or day that began at ``at``; waits and runs as histograms (jobs.histogram)."""

    at: datetime
    created: int
    started: int
    completed: int
    failed: int
    retried: int
    dead: int
    cancelled: int
    expired: int
    waits: list[int]
    runs: list[int]


@dataclass(slots=True)
class Recent:
    """The attempts that ended in each of the last minutes, the oldest first, and how many of them all failed."""

    ended: list[int]
    failed: int = 0

    @property
    def total(self) -> int:
        """All that ended."""
        return sum(self.ended)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds; None if nothing ran."""

    p50: float | None
    p95: float | None
    p99: float | None

    @classmethod
    def of(cls, histogram: Sequence[int]) -> Percentiles:
        """Read from a histogram, or from the sum of several."""
        return cls(*(percentile_ms(histogram, share) for share in (0.5, 0.95, 0.99)))


@dataclass(frozen=True, slots=True)
class Range:
    """From ``start`` up to, without, ``end``, in steps of a minute (kept 48 hours), hour (90 days) or day (2 years)."""

    start: datetime
    end: datetime
    grain: Literal["minute", "hour", "day"] = "minute"


def series(project_id: UUID, span: Range, *, queue_id: UUID | None = None, job_type: str | None = None) -> list[Point]:
    """One point for each step in which something was done, the oldest first. One query on the sums."""
    if queue_id is None and job_type is None:
        queue_id = WHOLE_PROJECT
    by_step: defaultdict[datetime, list[JobStat]] = defaultdict(list)
    for row in _sums(project_id, span, queue_id, job_type).order_by("at"):
        by_step[row.at].append(row)
    return [_point(at, rows) for at, rows in by_step.items()]


def recent_of(project_id: UUID, queue_ids: Iterable[UUID], now: datetime) -> dict[UUID, Recent]:
    """What ended in each of these queues in the last RECENT_MINUTES; one in which nothing did is missing. One query."""
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    since = end - timedelta(minutes=RECENT_MINUTES)
    rows = _sums(project_id, Range(since, end), None, None).filter(queue_id__in=list(queue_ids))
    sums = rows.values_list("queue_id", "at").annotate(good=Sum("completed"), bad=Sum(F("failed") + F("expired")))
    found: defaultdict[UUID, Recent] = defaultdict(lambda: Recent([0] * RECENT_MINUTES))
    for queue_id, at, good, bad in sums:
        if good or bad:
            recent = found[queue_id]
            recent.ended[(at - since) // timedelta(minutes=1)] += good + bad
            recent.failed += bad
    return dict(found)


def percentiles(points: Sequence[Point]) -> tuple[Percentiles, Percentiles]:
    """Of the wait and of the run, over all these points."""
    return (
        Percentiles.of(added([point.waits for point in points])),
        Percentiles.of(added([point.runs for point in points])),
    )


def top_job_types(project_id: UUID, span: Range, *, limit: int = 10) -> list[tuple[str, Point]]:
    """The types with the most starts in the whole span, each with its sum. One query on the sums."""
    by_type: defaultdict[str, list[JobStat]] = defaultdict(list)
    for row in _sums(project_id, span, None, None):
        by_type[row.job_type].append(row)
    found = [(job_type, _point(span.start, rows)) for job_type, rows in by_type.items()]
    return sorted(found, key=lambda item: (-item[1].started, item[0]))[:limit]


def snapshot(project_id: UUID) -> list[QueueNow]:
    """The project's queues as the leader counted them last."""
    return queues_now([project_id])


def _sums(project_id: UUID, span: Range, queue_id: UUID | None, job_type: str | None) -> QuerySet[JobStat]:
    rows = JobStat.objects.filter(project_id=project_id, grain=span.grain, at__gte=span.start, at__lt=span.end)
    rows = rows.exclude(queue_id=WHOLE_PROJECT) if queue_id is None else rows.filter(queue_id=queue_id)
    return rows if job_type is None else rows.filter(job_type=job_type)


def _point(at: datetime, rows: Sequence[JobStat]) -> Point:
    names = ("created", "started", "completed", "failed", "retried", "dead", "cancelled", "expired")
    counts = {name: sum(getattr(row, name) for row in rows) for name in names}
    waits, runs = added([row.wait_histogram for row in rows]), added([row.run_histogram for row in rows])
    return Point(at, **counts, waits=waits, runs=runs)
