"""Running due times that did not run: a window of them, or only what was missed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from uuid import UUID

from django.db import transaction

from jobs.models import ScheduledJob, ScheduleFire
from jobs.services.firing import entry, fire_one
from jobs.services.schedule_times import times_after
from scheduler_project.lib.errors import NotFound, ValidationFailed
from scheduler_project.lib.sql import database_now

#: One backfill runs at most so many due times; a longer window is refused, not cut.
MOST = 1_000


@dataclass(frozen=True, slots=True)
class Backfill:
    """The due times that were run, or would be in a dry run."""

    due_times: list[datetime]
    job_ids: list[UUID]


def backfill(
    schedule_id: UUID, *, since: datetime, until: datetime, only_missed: bool = False, is_dry_run: bool = False
) -> Backfill:
    """Run the due times of a window, both ends included, that have not run; a second time creates nothing.

    Args:
        only_missed: just those that the ledger has as skipped, not those from before the schedule existed.

    Raises:
        ValidationFailed: the window ends before it begins, in the future, or holds more than MOST due times.
    """
    with transaction.atomic():
        schedule = ScheduledJob.objects.select_for_update(of=("self",), no_key=True).filter(pk=schedule_id).first()
        if schedule is None:
            raise NotFound("There is no such schedule.")
        now = database_now()
        if not since <= until <= now:
            raise ValidationFailed.of("until", "must be at or after since, and not in the future")
        chosen = _choose(schedule, since, until, only_missed=only_missed)
        if is_dry_run:
            return Backfill(chosen, [])
        return Backfill(chosen, [_run(schedule, at, now) for at in chosen])


def _choose(schedule: ScheduledJob, since: datetime, until: datetime, *, only_missed: bool) -> list[datetime]:
    ledger = dict(
        ScheduleFire.objects.filter(scheduled_job=schedule, due_at__range=(since, until)).values_list(
            "due_at", "outcome"
        )
    )
    skipped = [at for at, outcome in ledger.items() if outcome == ScheduleFire.Outcome.SKIPPED]
    chosen = set(skipped)
    if not only_missed:
        for at in takewhile(lambda at: at <= until, times_after(schedule, since - timedelta(microseconds=1))):
            if at not in ledger:
                chosen.add(at)
            if len(chosen) > MOST:
                break
    if len(chosen) > MOST:
        raise ValidationFailed.of("until", f"the window holds more than {MOST:,} due times; take a shorter one")
    return sorted(chosen)


def _run(schedule: ScheduledJob, at: datetime, now: datetime) -> UUID:
    job_id = fire_one(schedule, at)
    fire = entry(schedule, at, now=now, job_id=job_id, reason=ScheduleFire.Reason.BACKFILL)
    changed = ScheduleFire.objects.filter(scheduled_job=schedule, due_at=at).update(
        outcome=fire.outcome, reason=fire.reason, job_id=job_id, late_ms=fire.late_ms, decided_at=now
    )
    if not changed:
        fire.save(force_insert=True)
    return job_id
