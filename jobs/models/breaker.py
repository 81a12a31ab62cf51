"""Circuit breakers: state shared by all workers."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class CircuitBreaker(models.Model):
    """What is known about calls to one handler or target in one project."""

    class State(models.TextChoices):
        """May its jobs run?"""

        CLOSED = "closed", "Closed"
        OPEN = "open", "Open"
        HALF_OPEN = "half_open", "Half open"

    id = models.BigAutoField(primary_key=True)
    project_id = models.UUIDField()
    name = models.CharField(max_length=300)
    state = models.CharField(max_length=10, choices=State, default=State.CLOSED)
    calls = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField(null=True)
    probe_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "circuit_breakers"
        constraints = [
            models.UniqueConstraint(fields=["project_id", "name"], name="circuit_breakers_name_in_project"),
            models.CheckConstraint(
                condition=Q(state__in=["closed", "open", "half_open"]), name="circuit_breakers_state"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.state}"
