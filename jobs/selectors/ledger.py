"""What was promised and what was delivered: the ledger of a schedule's due times."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from jobs.models import ScheduleFire


def list_fires(schedule_id: UUID) -> QuerySet[ScheduleFire]:
    """The due times of a schedule, the latest first."""
    return ScheduleFire.objects.filter(scheduled_job_id=schedule_id).order_by("-due_at")


def promised_and_delivered(schedule_id: UUID, since: datetime, until: datetime) -> dict[str, int]:
    """How many due times there were, ran, and were skipped for which reason."""
    skipped = {
        f"skipped_{r}": Count("id", filter=Q(outcome="skipped", reason=r))
        for r in ("paused", "overlap", "misfire", "limit")
    }
    fires = ScheduleFire.objects.filter(scheduled_job_id=schedule_id, due_at__range=(since, until))
    return fires.exclude(reason="manual").aggregate(
        promised=Count("id"), delivered=Count("id", filter=Q(outcome="fired")), **skipped
    )
