"""Schedules: create, change, switch on and off, pause, trigger. Firing is in ``firing.py``.

Whatever changes when a schedule is due starts from now: no due time that passed while it was off, or had another
expression, fires afterwards. ``backfill.py`` runs those that are wanted.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import JSONField, Value

from jobs.cron import CronError, parse, zone_of
from jobs.events import SCHEDULE, tell
from jobs.hints import DUE, hint
from jobs.models import ScheduledJob, ScheduleFire
from jobs.new_job import NewJob, checked, sealed_payload
from jobs.services.firing import entry, fire_one
from jobs.services.schedule_times import next_time
from queues.models import Queue
from scheduler_project.lib import sealed_json
from scheduler_project.lib.constraints import refusals
from scheduler_project.lib.errors import Conflict, FieldError, NotFound, ValidationFailed
from scheduler_project.lib.sql import database_now
from scheduler_project.lib.tzdata import tzdata_version

#: What a person may set; the rest is the scheduler's.
SETTINGS = frozenset(
    {
        "name", "cron_expression", "run_once_at", "timezone", "gap_policy", "repeat_policy", "misfire_policy",
        "misfire_grace_secs", "misfire_cap", "overlap_policy", "starts_at", "ends_at", "jitter_secs", "max_fires",
        "job_type", "payload_template", "retry_policy_id", "timeout_s",
    }
)  # fmt: skip
#: A change of one of these moves the next run.
_MOVING = frozenset(
    {"cron_expression", "run_once_at", "timezone", "gap_policy", "repeat_policy", "starts_at", "ends_at"}
)
_CHECKED_BY_MODEL = SETTINGS - {"cron_expression", "timezone", "payload_template", "retry_policy_id"}
_FOREIGN_POLICY = ValidationFailed.of("retry_policy_id", "is no retry policy of this project")


def create_schedule(queue: Queue, **settings: Any) -> ScheduledJob:
    """Create an active schedule; its first run is the first due time from now on.

    Raises:
        ValidationFailed: naming the field; also if it would never fire.
        Conflict: the project has a schedule of this name.
    """
    schedule = ScheduledJob(project_id=queue.project_id, queue=queue, **_known(settings))
    _check(schedule, is_new_payload=True)
    schedule.payload_template = sealed_payload(schedule.job_type, schedule.payload_template)
    _plan(schedule)
    _save(schedule)
    return schedule


def update_schedule(schedule_id: UUID, *, queue: Queue | None = None, **changes: Any) -> ScheduledJob:
    """Change settings; if that moves its times, the next run is the first due time from now on.

    Raises:
        ValidationFailed, Conflict: as for creating.
    """
    with transaction.atomic():
        schedule = _locked(schedule_id)
        if queue is not None:
            if queue.project_id != schedule.project_id:
                raise ValidationFailed.of("queue", "must be a queue of the same project")
            schedule.queue = queue
        for name, value in _known(changes).items():
            setattr(schedule, name, value)
        is_new_payload = "payload_template" in changes or ("job_type" in changes and not _is_sealed(schedule))
        _check(schedule, is_new_payload=is_new_payload)
        if changes.keys() & {"payload_template", "job_type"}:
            schedule.payload_template = sealed_payload(schedule.job_type, schedule.payload_template)
        if schedule.is_active and (_MOVING & changes.keys() or schedule.last_error):
            _plan(schedule)
        _save(schedule)
    return schedule


def activate(schedule_id: UUID) -> ScheduledJob:
    """Switch on; due times that passed while it was off do not fire. Nothing happens if it is on."""
    with transaction.atomic():
        schedule = _locked(schedule_id)
        if not schedule.is_active:
            _check(schedule, is_new_payload=False)
            schedule.is_active = True
            _plan(schedule)
            _save(schedule)
    return schedule


def deactivate(schedule_id: UUID) -> ScheduledJob:
    """Switch off: no due times, no rows in the ledger."""
    with transaction.atomic():
        schedule = _locked(schedule_id)
        schedule.is_active, schedule.next_run_at = False, None
        schedule.save(update_fields=["is_active", "next_run_at", "updated_at"])
        tell(SCHEDULE, schedule.project_id, schedule.pk, "changed")
    return schedule


def pause(schedule_id: UUID, *, reason: str = "", by: UUID | None, until: datetime | None = None) -> ScheduledJob:
    """Skip due times, each with a row in the ledger that says so, until resumed or ``until``."""
    with transaction.atomic():
        schedule = _locked(schedule_id)
        schedule.is_paused, schedule.paused_reason = True, reason[:500]
        schedule.paused_by_id, schedule.paused_until = by, until
        schedule.save(update_fields=["is_paused", "paused_reason", "paused_by", "paused_until", "updated_at"])
        tell(SCHEDULE, schedule.project_id, schedule.pk, "changed")
    return schedule


def resume(schedule_id: UUID) -> ScheduledJob:
    """End a pause."""
    with transaction.atomic():
        schedule = _locked(schedule_id)
        schedule.is_paused, schedule.paused_reason = False, ""
        schedule.paused_by_id, schedule.paused_until = None, None
        schedule.save(update_fields=["is_paused", "paused_reason", "paused_by", "paused_until", "updated_at"])
        tell(SCHEDULE, schedule.project_id, schedule.pk, "changed")
    return schedule


def trigger(schedule_id: UUID) -> UUID:
    """Run its job now, whatever its times, its pause or its earlier jobs; the job's id. The ledger says "manual"."""
    with transaction.atomic():
        schedule = _locked(schedule_id)
        now = database_now()
        job_id = fire_one(schedule, now)
        ledger = entry(schedule, now, now=now, job_id=job_id, reason=ScheduleFire.Reason.MANUAL)
        ledger.save(force_insert=True)
    return job_id


def _locked(schedule_id: UUID) -> ScheduledJob:
    rows = ScheduledJob.objects.select_for_update(of=("self",), no_key=True).select_related("queue")
    schedule = rows.filter(pk=schedule_id).first()
    if schedule is None:
        raise NotFound("There is no such schedule.")
    return schedule


def _known(settings: dict[str, Any]) -> dict[str, Any]:
    if unknown := sorted(settings.keys() - SETTINGS):
        raise ValidationFailed.of(
            unknown[0], f"is not a setting of a schedule; there are {', '.join(sorted(SETTINGS))}"
        )
    return settings


def _is_sealed(schedule: ScheduledJob) -> bool:
    """Are parts of its stored payload sealed? Then only the worker can judge it."""
    return sealed_json.has_reserved_name(schedule.payload_template)


def _check(schedule: ScheduledJob, *, is_new_payload: bool) -> None:
    errors = []
    if bool(schedule.cron_expression) == (schedule.run_once_at is not None):
        errors.append(FieldError("cron_expression", "give either this or run_once_at"))
    for name, use, value in (
        ("cron_expression", parse, schedule.cron_expression),
        ("timezone", zone_of, schedule.timezone),
    ):
        try:
            if value or name == "timezone":
                use(value)
        except CronError as error:
            errors.append(FieldError(name, str(error)))
    try:
        schedule.clean_fields(exclude={f.name for f in schedule._meta.fields} - _CHECKED_BY_MODEL)
        job = NewJob(
            job_type=schedule.job_type,
            payload=schedule.payload_template,
            timeout_s=schedule.timeout_s,
            is_stored=not is_new_payload,
        )
        checked([job])
    except ValidationError as error:
        errors += [FieldError(field, " ".join(texts)) for field, texts in error.message_dict.items()]
    except ValidationFailed as error:
        errors += [FieldError(re.sub(r"^payload\b", "payload_template", e.field), e.message) for e in error.details]
    if errors:
        raise ValidationFailed("; ".join(f"{e.field}: {e.message}" for e in errors), errors)


def _plan(schedule: ScheduledJob) -> None:
    """Set the next run from now on."""
    schedule.next_run_at = next_time(schedule, database_now())
    schedule.last_error, schedule.last_error_at = "", None
    schedule.tzdata_version = tzdata_version()
    if schedule.next_run_at is None:
        field = "cron_expression" if schedule.cron_expression else "run_once_at"
        raise ValidationFailed.of(field, "never fires from now on, within its start and end")


def _save(schedule: ScheduledJob) -> None:
    message = f"the project has a schedule named {schedule.name!r}"
    taken = Conflict(f"name: {message}", [FieldError("name", message)])
    with refusals({"scheduled_jobs_name_in_project": taken, "scheduled_jobs_retry_policy_in_project": _FOREIGN_POLICY}):
        if schedule.payload_template is None:  # JSON's null, as a job's payload may be; the column itself never is
            schedule.payload_template = Value(None, JSONField())
        schedule.save()
    schedule.refresh_from_db(fields=["payload_template"])
    tell(SCHEDULE, schedule.project_id, schedule.pk, "changed")
    hint(DUE)
