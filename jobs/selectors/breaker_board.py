"""Circuit breakers as the page shows them: first those that hold jobs back, then the others."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Func, IntegerField, OuterRef, Q, QuerySet

from jobs.models import CircuitBreaker, Job
from jobs.states import JobStatus

State = CircuitBreaker.State
#: Waiting jobs are counted so far.
MOST_WAITING = 1_000
_HOLDS_BACK = ~Q(state=State.CLOSED) | Q(allowance__isnull=False)


def holding_back(project_id: UUID) -> QuerySet[CircuitBreaker, Any]:
    """Breakers that let no job, or only some, through; each with ``n_waiting``, one more than the most if there are
    more than that."""
    waiting = Job.objects.filter(
        project_id=OuterRef("project_id"), circuit=OuterRef("name"), status=JobStatus.QUEUED
    ).values("id")[: MOST_WAITING + 1]
    counted = Func(ArraySubquery(waiting), function="cardinality", output_field=IntegerField())
    return CircuitBreaker.objects.filter(_HOLDS_BACK, project_id=project_id).annotate(n_waiting=counted).order_by("-id")


def trusted(project_id: UUID) -> QuerySet[CircuitBreaker]:
    """Breakers that let everything through, the newest first."""
    return CircuitBreaker.objects.filter(project_id=project_id).exclude(_HOLDS_BACK).order_by("-id")


def probe_at(breaker: CircuitBreaker) -> datetime | None:
    """When an open circuit is looked at again; it may be overdue while no job of it waits."""
    if breaker.state != State.OPEN or breaker.opened_at is None:
        return None
    return breaker.opened_at + timedelta(seconds=settings.BREAKER_COOL_DOWN_SECS)
