"""Circuit breakers: state shared by all workers."""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from scheduler_project.lib.ids import uuid7


class CircuitBreaker(models.Model):
    """What is known about calls to one handler or target in one project.

    Attributes:
        recent: the last outcomes, newest last: 0 went well, 1 went wrong.
        allowance: so many jobs may run although the circuit is not trusted: one to probe, more while it closes;
            null is no bound (closed) or none (open).
        let_through: these very jobs are the ones. The leader chooses them, so no two workers ever choose both.
    """

    class State(models.TextChoices):
        """May its jobs run?"""

        CLOSED = "closed", "Closed"
        OPEN = "open", "Open"
        HALF_OPEN = "half_open", "Half open"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project_id = models.UUIDField()
    name = models.CharField(max_length=300)
    state = models.CharField(max_length=10, choices=State, default=State.CLOSED, db_default=State.CLOSED)
    recent = models.CharField(max_length=20, default="", db_default="")
    opened_at = models.DateTimeField(null=True)
    allowance = models.PositiveIntegerField(null=True)
    let_through: models.Field[list[uuid.UUID], list[uuid.UUID]] = ArrayField(
        models.UUIDField(), default=list, db_default=models.Value("{}")
    )
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "circuit_breakers"
        constraints = [
            models.UniqueConstraint(fields=["project_id", "name"], name="circuit_breakers_name_in_project"),
            models.CheckConstraint(
                condition=Q(state__in=["closed", "open", "half_open"]), name="circuit_breakers_state"
            ),
            models.CheckConstraint(condition=~Q(state="half_open") | Q(allowance=1), name="circuit_breakers_one_probe"),
        ]
        indexes = [
            models.Index(
                fields=["project_id"],
                condition=Q(state__in=["open", "half_open"]) | Q(allowance__isnull=False),
                name="circuit_breakers_not_trusted",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.state}"
