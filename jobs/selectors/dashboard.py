"""All that the dashboard reads, from indexes and with an end to each count."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import FloatField, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Cast, Extract, JSONObject, Left

from dlq.models import DeadLetter
from jobs.histogram import added, percentile_ms
from jobs.models import WHOLE_PROJECT, Alert, Job, JobExecution, LeaderTerm, QueueStat, ScheduledJob, Worker
from jobs.selectors.alerts import firing_alerts, sentence_of
from jobs.selectors.depth_now import FRESH
from jobs.selectors.explain import LEADER_SILENT_S
from jobs.selectors.stats import depths_of
from orgs.models import Project
from queues.models import Queue
from scheduler_project.lib.ids import first_id_at
from scheduler_project.lib.web.text import shape_of

MOST_FAILURES, MOST_QUEUES, MOST_WORKERS, MOST_SCHEDULES = 2_000, 200, 100, 100
AGE_LIMIT_S = 300.0
LATE_S = 60.0
#: Name of a range -> its length in seconds and the number of bars, each of whole minutes.
RANGES = {"15m": (900, 15), "1h": (3_600, 60), "6h": (21_600, 72), "24h": (86_400, 96)}
#: From this length on waits and run times are told by the hour: so many minutes' histograms are slow to add up.
BY_THE_HOUR_S = 86_400
_BAD = ("failed", "lost")
_OF_SCHEDULES = ("name", "cron_expression", "timezone", "next_run_at", "is_paused", "last_error", "last_error_at")
#: Thousands of times are read and few are shown: a number costs a tenth of a time.
_ENDED = Cast(Extract("finished_at", "epoch"), FloatField())


@dataclass(frozen=True, slots=True)
class Attention:
    """Something a person should look at; ``fix`` is the name of the page that mends it, ``arg`` its last part."""

    text: str
    since: datetime | None
    fix: str
    arg: str = ""
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Failing:
    """Failures that look alike."""

    job_type: str
    error: str
    count: int
    first: datetime
    last: datetime


@dataclass(slots=True)
class History:
    """What was done in a range, in equal bars, the oldest first; times in seconds. ``by_type`` is known of a queue.

    ``is_hourly``: waits and run times are those of the hour in which a bar begins.
    """

    bars: list[datetime]
    created: list[int]
    started: list[int]
    completed: list[int]
    failed: list[int]
    cancelled: list[int]
    dead: list[int]
    wait: dict[str, list[float | None]]
    run: dict[str, list[float | None]]
    by_type: dict[str, Counter[str]]
    is_hourly: bool


@dataclass(frozen=True, slots=True)
class QueueNow:
    """A queue as it stands."""

    queue: Queue
    depth: dict[str, int]
    oldest_s: float | None
    has_worker: bool
    oldest: datetime | None = None

    @property
    def in_flight(self) -> int:
        """Claimed and running."""
        return self.depth["claimed"] + self.depth["running"]


@dataclass(frozen=True, slots=True)
class Now:
    """A project as it stands."""

    queues: list[QueueNow]
    workers: list[Worker]
    schedules: list[ScheduledJob]
    leader: LeaderTerm | None
    total: Counter[str]
    capacity: int
    oldest_s: float | None
    attention: list[Attention]


def project_now(project: Project, now: datetime) -> Now:
    """Queues with their depth and age, live workers, schedules by their next time, and what needs attention."""
    workers = list(alive(project.pk).order_by("hostname", "pid")[:MOST_WORKERS])
    queues = queues_now(project, _deepest(project.pk, now), workers, now)
    due = ScheduledJob.objects.filter(project=project, is_active=True).only(*_OF_SCHEDULES)
    schedules = list(due.order_by("next_run_at", "id")[:MOST_SCHEDULES])
    leader, firing, dead_since, counted = _of_project(project.pk, now)
    leaderless_since = None
    if leader and (leader.ended_at or (now - leader.renewed_at).total_seconds() > LEADER_SILENT_S):
        leaderless_since = leader.ended_at or leader.renewed_at
        leader = None
    total, oldest_s = _together(queues, counted, now)
    capacity = sum(worker.max_concurrency for worker in workers if reports(worker, now))
    attention = [
        *_of_alerts(firing),
        *_of_queues(queues),
        *_of_schedules(schedules, now),
        *_of_system(workers, now),
        *_of_letters(total["dead_letter"], dead_since),
    ]
    if leader is None:
        text = "No scheduler leads: nothing due is queued"
        attention.append(Attention(text, leaderless_since, "workers", is_bad=True))
    attention.sort(key=lambda row: not row.is_bad)
    return Now(queues, workers, schedules, leader, total, capacity, oldest_s, attention)


def _deepest(project_id: UUID, now: datetime) -> list[Queue]:
    """The queues in which most waits; all of them, if there are no more than MOST_QUEUES."""
    queues = Queue.objects.filter(project=project_id, deleted_at=None).only("name", "is_paused")
    ready = _fresh(now).values("ready")[:1]
    return list(with_counts(queues, now).order_by(Subquery(ready).desc(nulls_last=True), "name")[:MOST_QUEUES])


def _together(
    rows: Sequence[QueueNow], counted: dict[str, Any] | None, now: datetime
) -> tuple[Counter[str], float | None]:
    """What all queues hold, and for how long the oldest ready job waits.

    Args:
        rows: the deepest queues: all, if they are fewer than MOST_QUEUES.
        counted: what the leader counted in all of them.
    """
    if len(rows) < MOST_QUEUES or counted is None:
        total: Counter[str] = Counter()
        for row in rows:
            total.update(row.depth)
        return total, max((row.oldest_s for row in rows if row.oldest_s is not None), default=None)
    oldest = counted.pop("oldest")
    waited = None if oldest is None else max(0.0, (now - datetime.fromisoformat(oldest)).total_seconds())
    return Counter(counted), waited


def _fresh(now: datetime) -> QuerySet[QueueStat]:
    """Of the outer queue what the leader counted a moment ago."""
    return QueueStat.objects.filter(project_id=OuterRef("project_id"), queue_id=OuterRef("pk"), as_of__gt=now - FRESH)


def with_counts(queues: QuerySet[Queue], now: datetime) -> QuerySet[Queue]:
    """Each with what the leader counted a moment ago as ``counted``; null where none did."""
    shown = JSONObject(
        queued="ready",
        scheduled="scheduled",
        claimed="claimed",
        running="running",
        dead_letter="dead_letters",
        oldest="oldest_run_at",
    )
    return cast("QuerySet[Queue]", queues.annotate(counted=Subquery(_fresh(now).values_list(shown)[:1])))


def queues_now(project: Project, queues: Sequence[Queue], workers: Sequence[Worker], now: datetime) -> list[QueueNow]:
    """Depth, age of the oldest ready job (None without a leader), and whether a live worker serves the queue.

    One statement for queues that no leader has counted lately, else none.

    Args:
        queues: read through ``with_counts``.
    """
    missing = depths_of([queue.pk for queue in queues if _counted(queue) is None])
    rows = []
    for queue in queues:
        depth = _counted(queue) or {**missing[queue.pk], "oldest": None}
        at = None if depth["oldest"] is None else datetime.fromisoformat(depth["oldest"])
        age = None if at is None else max(0.0, (now - at).total_seconds())
        path = f"{project.organization.slug}/{project.slug}/{queue.name}"
        served = any(w.status == "active" and reports(w, now) and serves(w, path) for w in workers)
        counts = {name: count for name, count in depth.items() if name != "oldest"}
        rows.append(QueueNow(queue, counts, age, served, at))
    return rows


def _counted(queue: Queue) -> dict[str, Any] | None:
    return queue.counted  # type: ignore[attr-defined,no-any-return] # of with_counts


def serves(worker: Worker, path: str) -> bool:
    """Does a worker look at the queue of this path? An entry may end in ``*``."""
    asked = worker.subscribed_queues
    return not asked or any(path == one or (one.endswith("*") and path.startswith(one[:-1])) for one in asked)


def alive_workers(project_id: UUID) -> list[Worker]:
    """Live workers of a project, by host."""
    return list(alive(project_id).order_by("hostname", "pid")[:MOST_WORKERS])


def history(project_id: UUID, now: datetime, range_name: str, queue_id: UUID | None = None) -> History:
    """What was done in the range, from the sums of its minutes, times of a day by the hour; one statement."""
    length_s, count = RANGES[range_name]
    step = timedelta(seconds=length_s // count)
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    since = end - timedelta(seconds=length_s)
    place = {"project_id": project_id, "queue_id": WHOLE_PROJECT if queue_id is None else queue_id}
    times = {"times_grain": "minute", "times_since": since, "times_step_s": length_s // count}
    if length_s >= BY_THE_HOUR_S:
        times = {"times_grain": "hour", "times_since": since.astimezone(UTC).replace(minute=0), "times_step_s": 3_600}
    rows = Job.objects.history(**place, **times, since=since, until=end, step_s=length_s // count)
    counts: list[list[int]] = [[0] * count for _ in range(6)]
    waits, runs = ([added([])] * count for _ in range(2))
    by_type: dict[str, Counter[str]] = {}
    for at, *amounts, wait, run, types in rows:
        bar = (at - since) // step
        for column, amount in zip(counts, amounts, strict=True):
            column[bar] = amount
        waits[bar], runs[bar] = wait, run
        if types is not None:
            by_type = {name: Counter(completed=good, failed=bad) for name, (good, bad) in json.loads(types).items()}
    bars = [since + step * i for i in range(count)]
    of_time = _percentiles(waits), _percentiles(runs)
    created, started, completed, failed, cancelled, dead = counts
    is_hourly = length_s >= BY_THE_HOUR_S
    return History(bars, created, started, completed, failed, cancelled, dead, *of_time, by_type, is_hourly)


def failing(project_id: UUID, since: datetime) -> tuple[list[Failing], bool]:
    """The failures since then by type and shape of the error, the most frequent first; and whether some were left out.

    One statement, for the newest MOST_FAILURES.
    """
    rows = JobExecution.objects.filter(project_id=project_id, id__gte=first_id_at(since), status__in=_BAD)
    newest = rows.order_by("-id").annotate(error=Left("error_message", 300), ended=_ENDED)
    ends = list(newest.values_list("status", "ended", "job__job_type", "error")[: MOST_FAILURES + 1])
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for status, finished, job_type, error in ends[:MOST_FAILURES]:
        errors[job_type, shape_of(error or status)].append(finished)
    top = sorted(errors.items(), key=lambda item: -len(item[1]))[:8]
    found = [Failing(kind, text, len(at), _at(min(at)), _at(max(at))) for (kind, text), at in top]
    return found, len(ends) > MOST_FAILURES


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _percentiles(histograms: Sequence[Sequence[int]]) -> dict[str, list[float | None]]:
    found: dict[str, list[float | None]] = {}
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        at = [percentile_ms(histogram, share) for histogram in histograms]
        found[name] = [None if ms is None else ms / 1000 for ms in at]
    return found


def alive(project_id: UUID) -> QuerySet[Worker]:
    """The workers of a project and of all that did not stop."""
    seen = Q(project=None) | Q(project=project_id)
    return Worker.objects.filter(seen, status__in=[Worker.Status.ACTIVE, Worker.Status.DRAINING])


def reports(worker: Worker, now: datetime) -> bool:
    """Did the worker send a heartbeat lately?"""
    return (now - worker.last_seen_at).total_seconds() <= LEADER_SILENT_S


def _of_project(
    project_id: UUID, now: datetime
) -> tuple[LeaderTerm | None, list[Alert], datetime | None, dict[str, Any] | None]:
    """The newest term, what fires, when the oldest open letter was written, and what its queues hold; one statement."""
    term = JSONObject(**{name: name for name in ("id", "hostname", "pid", "acquired_at", "renewed_at", "ended_at")})
    alert = JSONObject(**{name: name for name in ("rule_name", "kind", "value", "threshold", "fired_at")})
    letters = DeadLetter.objects.filter(project=OuterRef("pk"), resolved=False, queue__deleted_at=None).order_by("id")
    sums = JSONObject(
        queued=Sum("ready"), scheduled=Sum("scheduled"), claimed=Sum("claimed"), running=Sum("running"),
        dead_letter=Sum("dead_letters"), oldest=Min("oldest_run_at"),
    )  # fmt: skip
    live = Queue.objects.filter(project=project_id, deleted_at=None)
    stats = QueueStat.objects.filter(project_id=OuterRef("pk"), as_of__gt=now - FRESH, queue_id__in=live.values("pk"))
    found: Any = Project.objects.filter(pk=project_id).annotate(
        counted=Subquery(stats.values("project_id").annotate(sums=sums).values("sums")),
        dead_since=Subquery(letters.values("moved_at")[:1]),
        term=Subquery(LeaderTerm.objects.order_by("-id").values_list(term)[:1]),
        firing=ArraySubquery(firing_alerts(project_id).values_list(alert)),
    )
    row = found.values_list("term", "firing", "dead_since", "counted").first()
    newest, firing, dead_since, counted = row or (None, [], None, None)
    leader = None if newest is None else LeaderTerm(**_timed(newest))
    return leader, [Alert(**_timed(one)) for one in firing], dead_since, counted


def _timed(row: dict[str, Any]) -> dict[str, Any]:
    is_time = {name for name, value in row.items() if name.endswith("_at") and value is not None}
    return {name: datetime.fromisoformat(value) if name in is_time else value for name, value in row.items()}


def _of_alerts(firing: Sequence[Alert]) -> list[Attention]:
    return [
        Attention(f"{alert.rule_name} fires: {sentence_of(alert)}", alert.fired_at, "alert_rules", is_bad=True)
        for alert in firing
    ]


def _of_queues(rows: Sequence[QueueNow]) -> list[Attention]:
    found = []
    for row in rows:
        name, key = row.queue.name, str(row.queue.pk)
        if row.queue.is_paused and row.depth["queued"]:
            found.append(
                Attention(f"{name} is paused with {row.depth['queued']:,} ready jobs", row.oldest, "queue", key)
            )
        elif row.depth["queued"] and not row.has_worker:
            text = f"{name} has {row.depth['queued']:,} ready jobs and no live worker"
            found.append(Attention(text, row.oldest, "queue", key, is_bad=True))
        elif row.oldest_s is not None and row.oldest_s > AGE_LIMIT_S:
            found.append(Attention(f"{name}: its oldest ready job waits too long", row.oldest, "queue", key))
    return found[:20]


def _of_schedules(rows: Sequence[ScheduledJob], now: datetime) -> list[Attention]:
    found = []
    for row in rows:
        if row.last_error:
            text = f"{row.name} could not fire: {row.last_error[:160]}"
            found.append(Attention(text, row.last_error_at, "scheduled_jobs", is_bad=True))
        elif row.next_run_at and not row.is_paused and (now - row.next_run_at).total_seconds() > LATE_S:
            found.append(Attention(f"{row.name} is late", row.next_run_at, "scheduled_jobs", is_bad=True))
    return found[:20]


def _of_system(workers: Sequence[Worker], now: datetime) -> list[Attention]:
    found = []
    if not workers:
        found.append(Attention("No worker is alive: nothing runs", None, "workers", is_bad=True))
    silent = [w for w in workers if not reports(w, now)]
    for worker in silent[:10]:
        text = f"{worker.hostname}:{worker.pid} does not report; its jobs return when their leases end"
        found.append(Attention(text, worker.last_seen_at, "workers", is_bad=True))
    return found


def _of_letters(count: int, since: datetime | None) -> list[Attention]:
    if not count:
        return []
    text = f"{count:,} dead letter{'s wait' if count > 1 else ' waits'} for a decision"
    return [Attention(text, since, "dead_letter")]
