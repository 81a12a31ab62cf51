"""Firing schedules: for each due time one row in the ledger and, if it runs, one job, in one transaction."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, cast
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from jobs import metrics
from jobs.events import SCHEDULE, tell
from jobs.lifecycle.cancel import cancel_jobs
from jobs.lifecycle.submit import NewJob, Parent, submit_job
from jobs.misfire import Due, Rules, judge
from jobs.models import EventType, Job, ScheduledJob, ScheduleFire
from jobs.services.outgoing import emit
from jobs.services.schedule_times import next_time, times_until
from jobs.states import IN_FLIGHT, WAITING
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import session
from scheduler_project.lib.tzdata import tzdata_version

log = logs.get(__name__)

#: A schedule that can not be fired is tried again this often.
RETRY_BAD_AFTER = timedelta(minutes=1)
#: So far back a schedule's own jobs are looked through for one that has not ended.
RECENT_JOBS = 50

Outcome = ScheduleFire.Outcome
Reason = ScheduleFire.Reason


def fire_due(*, limit: int = 200) -> int:
    """Fire up to ``limit`` schedules that are due; how many due times were decided. A bad one never stops another."""
    return sum(_fire_safely(schedule_id) for schedule_id in _due_ids(limit))


def due_in_s() -> float | None:
    """Seconds until the next schedule is due, negative if one is late, None if there is none."""
    found = _waiting().exclude(next_run_at=None).annotate(left=F("next_run_at") - Now()).order_by("next_run_at").first()
    return None if found is None else float(found.left.total_seconds())


def _waiting() -> QuerySet[ScheduledJob]:
    is_fit = Q(last_error_at=None) | Q(last_error_at__lt=Now() - RETRY_BAD_AFTER)
    return ScheduledJob.objects.filter(is_fit, is_active=True)


def _due_ids(limit: int) -> list[UUID]:
    due = _waiting().filter(next_run_at__lte=Now()).order_by("next_run_at", "id")
    return list(due.values_list("id", flat=True)[:limit])


def _fire_safely(schedule_id: UUID) -> int:
    try:
        with transaction.atomic():
            return _fire(schedule_id)
    except OperationalError as error:
        if session() is None:
            raise
        # A deadlock or a lock that was not to be had: nothing is wrong with the schedule, the next round takes it.
        log.warning("schedule_not_fired_yet", scheduled_job_id=str(schedule_id), error=str(error).splitlines()[0])
        return 0
    except Exception as error:  # boundary: one bad row never stops the others
        if session() is None:
            raise
        text = (str(error).splitlines() or [""])[0][:500] or type(error).__name__
        log.error("schedule_not_fired", scheduled_job_id=str(schedule_id), error=text)
        ScheduledJob.objects.filter(pk=schedule_id).update(last_error=text, last_error_at=Now())
        return 0


def _fire(schedule_id: UUID) -> int:
    rows = ScheduledJob.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
    schedule = rows.annotate(db_now=Now()).filter(pk=schedule_id, is_active=True, next_run_at__lte=Now()).first()
    if schedule is None or schedule.next_run_at is None:
        return 0  # another leader was here, or it was changed
    now: datetime = schedule.db_now
    due_times, later = times_until(schedule, schedule.next_run_at, now)
    decided = _decide(schedule, _unknown_to_ledger(schedule, due_times), now, later)
    schedule.last_run_at = max([due.at for due in decided if due.runs], default=schedule.last_run_at)
    schedule.next_run_at = next_time(schedule, due_times[-1])
    schedule.last_error, schedule.last_error_at = "", None
    schedule.tzdata_version = tzdata_version()
    if schedule.next_run_at is None or _is_used_up(schedule):
        schedule.is_active, schedule.next_run_at = False, None
    schedule.save(
        update_fields=[
            "last_run_at", "next_run_at", "last_error", "last_error_at", "tzdata_version", "is_active", "is_paused",
            "paused_reason", "paused_by", "paused_until",
        ]
    )  # fmt: skip
    tell(SCHEDULE, schedule.project_id, schedule.pk, "fired")
    return len(due_times)


def _unknown_to_ledger(schedule: ScheduledJob, due_times: Sequence[datetime]) -> list[datetime]:
    """Without the due times that were decided before: the clock or an edit went back over them."""
    known = set(
        ScheduleFire.objects.filter(scheduled_job=schedule, due_at__in=due_times).values_list("due_at", flat=True)
    )
    return [at for at in due_times if at not in known]


def _decide(schedule: ScheduledJob, due_times: Sequence[datetime], now: datetime, later: int) -> list[Due]:
    """Decide each due time, submit the jobs of those that run, write them all into the ledger."""
    paused = [at for at in due_times if _is_paused_at(schedule, at)]
    rules = Rules(
        cast(Literal["run_once", "skip", "run_all"], schedule.misfire_policy),
        timedelta(seconds=schedule.misfire_grace_secs),
        schedule.misfire_cap,
    )
    judged = judge([at for at in due_times if at not in paused], now, rules, later=later)
    _end_pause(schedule, now)
    ledger = [entry(schedule, at, reason=Reason.PAUSED, now=now) for at in paused]
    decided = [Due(at, runs=False) for at in paused]
    left = _fires_left(schedule)
    for due in judged:
        reason, parents = _reason_to_skip(schedule, due, left)
        job_id = None if reason else fire_one(schedule, due.at, parents)
        left -= job_id is not None
        ledger.append(entry(schedule, due.at, job_id=job_id, reason=reason, now=now))
        decided.append(Due(due.at, runs=job_id is not None))
    ScheduleFire.objects.bulk_create(ledger)
    _tell_missed(schedule, [fire.due_at for fire in ledger if fire.reason == Reason.MISFIRE])
    metrics.count_fires([(fire.outcome, fire.reason) for fire in ledger])
    return decided


def _tell_missed(schedule: ScheduledJob, missed: Sequence[datetime]) -> None:
    """One event, however many due times were missed at once."""
    if missed:
        about = {
            "schedule_id": str(schedule.pk), "name": schedule.name, "missed": len(missed),
            "first_due_at": min(missed).isoformat(), "last_due_at": max(missed).isoformat(),
        }  # fmt: skip
        emit(EventType.SCHEDULE_MISSED, schedule.project_id, about, queue_id=schedule.queue_id)


def _reason_to_skip(schedule: ScheduledJob, due: Due, left: float) -> tuple[str, list[Parent]]:
    """Why a due time does not run, empty if it does; and the earlier jobs that its job must wait for."""
    if not due.runs:
        return Reason.MISFIRE, []
    if left <= 0:
        return Reason.LIMIT, []
    policy = schedule.overlap_policy
    if policy == ScheduledJob.OverlapPolicy.ALLOW:
        return "", []
    recent = Job.objects.filter(scheduled_job=schedule).order_by("-id").values_list("id", "status")[:RECENT_JOBS]
    waiting = [id_ for id_, status in recent if status in WAITING]
    running = [id_ for id_, status in recent if status in IN_FLIGHT]
    if policy == ScheduledJob.OverlapPolicy.CANCEL_RUNNING:
        cancel_jobs(waiting + running, reason="The schedule's next job takes its place.")
        return "", []
    if policy == ScheduledJob.OverlapPolicy.QUEUE_ONE:
        return Reason.OVERLAP if waiting else "", [Parent(id_, "run") for id_ in running]
    return Reason.OVERLAP if waiting or running else "", []


def fire_one(schedule: ScheduledJob, due_at: datetime, parents: Sequence[Parent] = ()) -> UUID:
    """Submit the job of one due time, in the caller's transaction."""
    jitter = timedelta(seconds=random.uniform(0, schedule.jitter_secs))  # noqa: S311 - spreads load only
    job = NewJob(
        job_type=schedule.job_type,
        payload=schedule.payload_template,
        is_stored=True,
        run_at=due_at + jitter,
        retry_policy_id=schedule.retry_policy_id,
        timeout_s=schedule.timeout_s,
        scheduled_job_id=schedule.pk,
        depends_on=parents,
    )
    return submit_job(schedule.queue, job).id


def entry(
    schedule: ScheduledJob, due_at: datetime, *, now: datetime, job_id: UUID | None = None, reason: str = ""
) -> ScheduleFire:
    """A row of the ledger, not stored yet."""
    return ScheduleFire(
        project_id=schedule.project_id,
        scheduled_job=schedule,
        due_at=due_at,
        outcome=Outcome.SKIPPED if job_id is None else Outcome.FIRED,
        reason=reason,
        job_id=job_id,
        late_ms=max(0, int((now - due_at).total_seconds() * 1000)),
    )


def _is_paused_at(schedule: ScheduledJob, at: datetime) -> bool:
    return schedule.is_paused and (schedule.paused_until is None or at < schedule.paused_until)


def _end_pause(schedule: ScheduledJob, now: datetime) -> None:
    if schedule.is_paused and schedule.paused_until is not None and schedule.paused_until <= now:
        schedule.is_paused, schedule.paused_until, schedule.paused_by, schedule.paused_reason = False, None, None, ""


def _fires_left(schedule: ScheduledJob) -> float:
    if schedule.max_fires is None:
        return float("inf")
    fired = ScheduleFire.objects.filter(scheduled_job=schedule, outcome=Outcome.FIRED).exclude(reason=Reason.MANUAL)
    return schedule.max_fires - fired.count()


def _is_used_up(schedule: ScheduledJob) -> bool:
    return _fires_left(schedule) <= 0


def recompute_after_upgrade() -> int:
    """Compute the future times anew that were computed with other time-zone data; how many rows were looked at."""
    current = tzdata_version()
    outdated = ScheduledJob.objects.filter(is_active=True, next_run_at__gt=Now()).exclude(tzdata_version=current)
    count = 0
    for schedule in outdated.annotate(db_now=Now()):
        try:
            found = next_time(schedule, schedule.db_now)
        except Exception as error:  # boundary: a bad row; firing it will say what is wrong
            if session() is None:
                raise
            log.error("next_run_not_recomputed", scheduled_job_id=str(schedule.pk), error=str(error))
            continue
        count += ScheduledJob.objects.filter(pk=schedule.pk, next_run_at=schedule.next_run_at).update(
            next_run_at=found, tzdata_version=current
        )
    return count
