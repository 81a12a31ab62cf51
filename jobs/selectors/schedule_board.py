"""What the pages of schedules show: schedules with their last due times, and what a range promised and delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, DateTimeField, DurationField, Func, Max, OuterRef, Q, QuerySet, Value
from django.db.models.functions import JSONObject

from jobs.models import Job, ScheduledJob, ScheduleFire

#: So many due times stand beside each schedule.
MOST_TICKS = 20
#: A due time that was not decided so long after it is late.
LATE = timedelta(seconds=60)
#: Name of a range -> its length and that of a bar.
LEDGER_RANGES = {
    "24h": (timedelta(hours=24), timedelta(hours=1)),
    "7d": (timedelta(days=7), timedelta(hours=6)),
    "31d": (timedelta(days=31), timedelta(days=1)),
}
_SHOWN = (
    "name", "cron_expression", "timezone", "is_active", "is_paused", "paused_reason", "paused_until", "next_run_at",
    "last_error", "overlap_policy", "misfire_policy", "queue__name",
)  # fmt: skip
_EPOCH = datetime(2001, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Tick:
    """One due time; ``word`` is what became of it: the status of its job, or why there is none."""

    due_at: datetime
    css: str
    word: str


@dataclass(slots=True)
class Delivery:
    """Of the due times of a range: how many there were, ran, ran late, were skipped for which reason; and in bars."""

    promised: int = 0
    fired: int = 0
    late: int = 0
    worst_late_ms: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    bars: list[datetime] = field(default_factory=list)
    fired_in: list[int] = field(default_factory=list)
    skipped_in: list[int] = field(default_factory=list)

    @property
    def skipped_total(self) -> int:
        """Skipped for whatever reason."""
        return self.skipped.total()

    @property
    def skipped_words(self) -> list[tuple[str, int]]:
        """How many for which reason."""
        words = {"paused": "paused", "overlap": "overlapped", "misfire": "missed", "limit": "over the limit"}
        return [(words.get(reason, reason), n) for reason, n in self.skipped.most_common()]

    @property
    def worst_late_s(self) -> float:
        """Of those that fired."""
        return self.worst_late_ms / 1000


STATES = {
    "on": Q(is_active=True, is_paused=False),
    "paused": Q(is_active=True, is_paused=True),
    "off": Q(is_active=False),
}
_SKIPPED = {reason: f"skipped: {str(label).lower()}" for reason, label in ScheduleFire.Reason.choices}
_TICK_OF_STATUS = {
    "completed": "completed", "failed": "failed", "dead_letter": "failed", "cancelled": "cancelled",
    "queued": "open", "scheduled": "open", "claimed": "open", "running": "open",
}  # fmt: skip


def board(project_id: UUID, state: str, now: datetime) -> QuerySet[ScheduledJob]:
    """A project's schedules with what a list shows of them and their queues, and their last due times, ``last_fires``.

    Args:
        state: a key of STATES, "trouble" for those that are late or can not fire, anything else for all.
    """
    rows = ScheduledJob.objects.filter(project_id=project_id).select_related("queue").only(*_SHOWN)
    if state == "trouble":
        rows = rows.filter(~Q(last_error="") | Q(next_run_at__lt=now - LATE), is_active=True)
    elif state in STATES:
        rows = rows.filter(STATES[state])
    fires = ScheduleFire.objects.filter(scheduled_job=OuterRef("pk")).order_by("-due_at")
    one = JSONObject(due_at="due_at", reason="reason", job_id="job_id")
    found = rows.annotate(last_fires=ArraySubquery(fires.values_list(one)[:MOST_TICKS]))
    return cast("QuerySet[ScheduledJob]", found)


def ticks_of(project_id: UUID, schedules: Sequence[Any]) -> dict[UUID, list[Tick]]:
    """The last due times of schedules read through ``board``, the oldest first; one statement."""
    job_ids = {fire["job_id"] for row in schedules for fire in row.last_fires if fire["job_id"]}
    statuses = Job.objects.statuses(project_id, job_ids) if job_ids else {}
    return {row.pk: [_tick(fire, statuses) for fire in reversed(row.last_fires)] for row in schedules}


def statuses_of(project_id: UUID, job_ids: Iterable[UUID]) -> dict[UUID, str]:
    """The status of each job that is still kept."""
    ids = {str(id_): id_ for id_ in job_ids}
    return {ids[text]: status for text, status in Job.objects.statuses(project_id, ids).items()} if ids else {}


def _tick(fire: dict[str, Any], statuses: dict[str, str]) -> Tick:
    due_at = datetime.fromisoformat(fire["due_at"])
    if not fire["job_id"]:
        return Tick(due_at, "skipped", _SKIPPED.get(fire["reason"], f"skipped: {fire['reason']}"))
    status = statuses.get(fire["job_id"])
    if status is None:
        return Tick(due_at, "fired", "fired, its job is archived")
    return Tick(due_at, _TICK_OF_STATUS[status], status.replace("_", " "))


def ledger(schedule_id: UUID, since: datetime, outcome: str) -> QuerySet[ScheduleFire]:
    """The due times since a moment; only fired, skipped, by hand or backfilled ones if asked for."""
    fires = ScheduleFire.objects.filter(scheduled_job_id=schedule_id, due_at__gte=since)
    if outcome in ScheduleFire.Outcome.values:
        return fires.filter(outcome=outcome)
    return fires.filter(reason=outcome) if outcome in ("manual", "backfill") else fires


def delivery(schedule_id: UUID, now: datetime, range_name: str) -> Delivery:
    """What a range promised and delivered, without what was triggered by hand; one statement."""
    length, step = LEDGER_RANGES[range_name]
    last = now - (now - _EPOCH) % step
    count = length // step
    found = Delivery(bars=[last - step * (count - 1 - i) for i in range(count)])
    found.fired_in, found.skipped_in = [0] * count, [0] * count
    bar = Func(
        Value(step, DurationField()), "due_at", Value(_EPOCH, DateTimeField()), function="date_bin",
        output_field=DateTimeField(),
    )  # fmt: skip
    fires = ScheduleFire.objects.filter(scheduled_job_id=schedule_id, due_at__range=(found.bars[0], now))
    rows = fires.exclude(reason="manual").order_by().annotate(bar=bar).values_list("bar", "outcome", "reason")
    late = Count("id", filter=Q(late_ms__gt=LATE / timedelta(milliseconds=1)))
    for at, outcome, reason, n, n_late, worst in rows.annotate(n=Count("*"), late=late, worst=Max("late_ms")):
        i = min(count - 1, max(0, (at - found.bars[0]) // step))
        found.promised += n
        if outcome == ScheduleFire.Outcome.SKIPPED:
            found.skipped[reason] += n
            found.skipped_in[i] += n
            continue
        found.fired += n
        found.fired_in[i] += n
        if reason != ScheduleFire.Reason.BACKFILL:
            found.late += n_late
            found.worst_late_ms = max(found.worst_late_ms, worst)
    return found
