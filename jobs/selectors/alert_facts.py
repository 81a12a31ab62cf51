"""What alert rules measure: from the statistics and from small indexes, never from the table of jobs.

The queue of notices is left out everywhere: an alert about notices that fail would send more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet, Sum

from jobs.models import (
    NOTICES_QUEUE,
    WHOLE_PROJECT,
    AlertRule,
    JobStat,
    LeaderTerm,
    QueueStat,
    ScheduledJob,
    ScheduleFire,
    Worker,
)
from orgs.models import Project
from queues.models import Queue

Kind = AlertRule.Kind
#: The leader counts every second or two, a big queue every 15 s at the latest; older counts say nothing.
FRESH = timedelta(seconds=30)
#: Things named in an alert, the worst first.
MOST_NAMED = 5
#: Where there never was a leader: longer than any rule asks for.
NEVER_S = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Measured:
    """A value now, None if it can not be known now; and what a person wants to know beside it."""

    value: float | None
    details: dict[str, Any] = field(default_factory=dict)


def measure(rule: AlertRule, now: datetime) -> Measured:
    """What the rule looks at, as it is now. One to three statements."""
    return _MEASURES[Kind(rule.kind)](rule, _projects(rule), now)


def _projects(rule: AlertRule) -> list[UUID]:
    if rule.scope == AlertRule.Scope.PROJECT:
        return [rule.project_id]
    sisters = Project.objects.filter(organization__projects=rule.project_id, deleted_at=None)
    return list(sisters.values_list("pk", flat=True))


def _queues(rule: AlertRule, projects: Sequence[UUID]) -> dict[UUID, str]:
    found = Queue.objects.filter(project_id__in=projects, deleted_at=None).exclude(name=NOTICES_QUEUE)
    if rule.queue_id is not None:
        found = found.filter(pk=rule.queue_id)
    return dict(found.values_list("pk", "name"))


def _sums(rule: AlertRule, projects: Sequence[UUID], now: datetime, *columns: str) -> list[dict[str, Any]]:
    """Of each queue the sums over the window, which begins with a whole minute."""
    queues = _queues(rule, projects)
    since = (now - timedelta(seconds=rule.window_secs)).replace(second=0, microsecond=0)
    rows = JobStat.objects.filter(project_id__in=projects, grain="minute", at__gte=since)
    rows = rows.exclude(queue_id=WHOLE_PROJECT) if rule.queue_id is None else rows.filter(queue_id=rule.queue_id)
    sums = rows.order_by().values("queue_id").annotate(**{f"n_{name}": Sum(name) for name in columns})
    return [{**row, "queue": queues[row["queue_id"]]} for row in sums if row["queue_id"] in queues]


def _failure_rate(rule: AlertRule, projects: Sequence[UUID], now: datetime) -> Measured:
    rows = _sums(rule, projects, now, "completed", "failed", "expired")
    for row in rows:
        row["bad"] = row["n_failed"] + row["n_expired"]
    bad = sum(row["bad"] for row in rows)
    total = bad + sum(row["n_completed"] for row in rows)
    worst = sorted((row for row in rows if row["bad"]), key=lambda row: -row["bad"])[:MOST_NAMED]
    details = {"failed": bad, "attempts": total, "queues": {row["queue"]: row["bad"] for row in worst}}
    # Fewer say nothing: of one attempt that failed the rate is 100 percent.
    is_enough = total >= max(1, rule.min_attempts)
    return Measured(round(100 * bad / total, 2) if is_enough else 0.0, details)


def _dead_letter_growth(rule: AlertRule, projects: Sequence[UUID], now: datetime) -> Measured:
    rows = [row for row in _sums(rule, projects, now, "dead") if row["n_dead"]]
    worst = sorted(rows, key=lambda row: -row["n_dead"])[:MOST_NAMED]
    return Measured(
        float(sum(row["n_dead"] for row in rows)), {"queues": {row["queue"]: row["n_dead"] for row in worst}}
    )


def _oldest_age(rule: AlertRule, projects: Sequence[UUID], now: datetime) -> Measured:
    queues = _queues(rule, projects)
    fresh = QueueStat.objects.filter(project_id__in=projects, queue_id__in=list(queues), as_of__gt=now - FRESH)
    counted = list(fresh.values_list("queue_id", "oldest_run_at"))
    if queues and not counted:
        return Measured(None)  # nobody has counted lately
    ages = {queues[id_]: max(0.0, (now - at).total_seconds()) for id_, at in counted if at is not None}
    worst = sorted(ages.items(), key=lambda item: -item[1])[:MOST_NAMED]
    return Measured(round(max(ages.values(), default=0.0), 1), {"queues": {name: round(age) for name, age in worst}})


def _worker_lost(rule: AlertRule, projects: Sequence[UUID], now: datetime) -> Measured:
    # Who fell silent is noticed after this time, and what is remembered is when he was last seen.
    silent_s = max(30.0, 3.0 * settings.WORKER_HEARTBEAT_INTERVAL_SECS)
    since = now - timedelta(seconds=rule.window_secs + silent_s)
    lost = Worker.objects.filter(status=Worker.Status.LOST, last_seen_at__gte=since)
    rows = list(lost.order_by("-last_seen_at").values_list("pk", "project_id")[:1_000])
    # Those that serve every project are everybody's.
    mine = [str(pk) for pk, project_id in rows if project_id is None or project_id in projects]
    return Measured(float(len(mine)), {"workers": mine[:MOST_NAMED]})


def _schedule_late(_: AlertRule, projects: Sequence[UUID], now: datetime) -> Measured:
    late = _live(projects).filter(next_run_at__lte=now).order_by("next_run_at")
    rows = list(late.values_list("name", "next_run_at")[:MOST_NAMED])
    ages = {name: round((now - at).total_seconds(), 1) for name, at in rows if at is not None}
    return Measured(max(ages.values(), default=0.0), {"schedules": ages} if ages else {})


def _schedule_missed(rule: AlertRule, projects: Sequence[UUID], now: datetime) -> Measured:
    missed = ScheduleFire.objects.filter(
        project_id__in=projects,
        reason=ScheduleFire.Reason.MISFIRE,
        decided_at__gte=now - timedelta(seconds=rule.window_secs),
    )
    names: dict[str, int] = {}
    rows = list(missed.values_list("scheduled_job__name", flat=True)[:10_000])
    for name in rows:
        names[name] = names.get(name, 0) + 1
    worst = sorted(names.items(), key=lambda item: -item[1])[:MOST_NAMED]
    return Measured(float(len(rows)), {"schedules": dict(worst)} if worst else {})


def no_leader_s(now: datetime) -> float:
    """Seconds since a leader was last seen at work; a leader shows itself once a second."""
    term = LeaderTerm.objects.order_by("-id").first()
    return NEVER_S if term is None else max(0.0, (now - (term.ended_at or term.renewed_at)).total_seconds())


def _no_leader(_: AlertRule, __: Sequence[UUID], now: datetime) -> Measured:
    return Measured(round(no_leader_s(now), 1))


def _live(projects: Sequence[UUID]) -> QuerySet[ScheduledJob]:
    return ScheduledJob.objects.filter(project_id__in=projects, is_active=True, is_paused=False)


_MEASURES: dict[AlertRule.Kind, Callable[[AlertRule, Sequence[UUID], datetime], Measured]] = {
    Kind.FAILURE_RATE: _failure_rate,
    Kind.OLDEST_AGE: _oldest_age,
    Kind.DEAD_LETTER_GROWTH: _dead_letter_growth,
    Kind.WORKER_LOST: _worker_lost,
    Kind.SCHEDULE_LATE: _schedule_late,
    Kind.SCHEDULE_MISSED: _schedule_missed,
    Kind.NO_LEADER: _no_leader,
}
