"""Schedules that are late, or that can not be fired."""

from __future__ import annotations

from datetime import timedelta

from jobs.doctor.finding import Findings, problem, warning
from jobs.models import ScheduledJob
from scheduler_project.lib.sql import database_now

LATE = timedelta(seconds=60)
MOST = 20


def look() -> Findings:
    """Due times that passed, and the last errors."""
    now = database_now()
    active = ScheduledJob.objects.filter(is_active=True, is_paused=False)
    late = active.filter(next_run_at__lt=now - LATE)
    for schedule in late.order_by("next_run_at")[:MOST]:
        by_s = 0.0 if schedule.next_run_at is None else (now - schedule.next_run_at).total_seconds()
        yield problem(
            f"schedule {schedule.name} ({schedule.pk}) is late by {by_s:.0f} s",
            "see the check leader; then its last_error",
        )
    for schedule in active.exclude(last_error="").order_by("-last_error_at")[:MOST]:
        yield warning(
            f"schedule {schedule.name} ({schedule.pk}) could not be fired: {schedule.last_error[:200]}",
            "correct the schedule; it is tried again each minute",
        )
