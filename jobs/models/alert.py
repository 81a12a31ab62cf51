"""Alerts: what is watched, and when it was wrong."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from jobs.models.outgoing import MAX_URL_CHARS
from orgs.models import Project
from queues.models import Queue
from scheduler_project.lib.ids import uuid7

#: Two days are kept by the minute, which is what a window is read from.
MIN_WINDOW_S, MAX_WINDOW_S = 60, 86_400
MAX_FOR_S = 86_400
MAX_THRESHOLD = 1e9
MAX_EMAILS = 10


class AlertRule(models.Model):
    """What is watched, from where on it is wrong, and who is told.

    A rule of the scope ``organization`` looks at all projects of the organization; its own project is the one whose
    queue and secrets its notices use.
    """

    class Kind(models.TextChoices):
        """What is measured; the threshold's unit is in brackets."""

        FAILURE_RATE = "failure_rate", "Failed attempts (percent)"
        OLDEST_AGE = "oldest_age", "Oldest ready job (seconds)"
        DEAD_LETTER_GROWTH = "dead_letter_growth", "New dead letters (count)"
        WORKER_LOST = "worker_lost", "Workers lost (count)"
        SCHEDULE_LATE = "schedule_late", "Schedule late (seconds)"
        SCHEDULE_MISSED = "schedule_missed", "Due times missed (count)"
        NO_LEADER = "no_leader", "No scheduler leads (seconds)"

    class Scope(models.TextChoices):
        """What it looks at."""

        PROJECT = "project", "This project"
        ORGANIZATION = "organization", "All projects of the organization"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20, choices=Kind)
    scope = models.CharField(max_length=12, choices=Scope, default=Scope.PROJECT)
    queue = models.ForeignKey(
        Queue, models.CASCADE, null=True, blank=True, related_name="+", db_constraint=False, db_index=False
    )
    threshold = models.FloatField(help_text="From this value on it is wrong.")
    window_secs = models.PositiveIntegerField(
        default=300,
        validators=[MinValueValidator(MIN_WINDOW_S), MaxValueValidator(MAX_WINDOW_S)],
        help_text="What is counted is counted over so long.",
    )
    for_secs = models.PositiveIntegerField(
        default=0, validators=[MaxValueValidator(MAX_FOR_S)], help_text="Fires once it was wrong for so long."
    )
    min_attempts = models.PositiveIntegerField(
        default=10, help_text="Of a failure rate: with fewer attempts in the window nothing is wrong."
    )
    webhook_url = models.CharField(max_length=MAX_URL_CHARS, blank=True)
    emails = ArrayField(models.EmailField(), size=MAX_EMAILS, default=list, blank=True)
    is_enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "alert_rules"
        indexes = [models.Index(fields=["id"], condition=Q(is_enabled=True), name="alert_rules_enabled")]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="alert_rules_name_in_project"),
            models.CheckConstraint(
                condition=Q(
                    kind__in=[
                        "failure_rate", "oldest_age", "dead_letter_growth", "worker_lost", "schedule_late",
                        "schedule_missed", "no_leader",
                    ],
                    scope__in=["project", "organization"],
                ),
                name="alert_rules_kind",
            ),
            models.CheckConstraint(
                condition=Q(
                    threshold__gt=0,
                    threshold__lte=MAX_THRESHOLD,
                    window_secs__range=(MIN_WINDOW_S, MAX_WINDOW_S),
                    for_secs__lte=MAX_FOR_S,
                ),
                name="alert_rules_numbers",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name


class Alert(models.Model):
    """One time at which a rule was broken: pending, then firing, then resolved. What never fired leaves no trace.

    It keeps what the rule was called, since it outlives it. Of a rule at most one is open, by a unique index: two that
    evaluate at once can not both begin, and each step is one guarded update, so they can not both tell.
    """

    class State(models.TextChoices):
        """Where it is."""

        PENDING = "pending", "Pending"
        FIRING = "firing", "Firing"
        RESOLVED = "resolved", "Resolved"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    rule_id = models.UUIDField()
    rule_name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20, choices=AlertRule.Kind)
    threshold = models.FloatField()
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    value = models.FloatField(help_text="When it began, and then when it fired.")
    details = models.JSONField(default=dict, help_text="What was wrong when it fired.")
    since = models.DateTimeField(db_default=Now())
    fired_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=200, blank=True)

    class Meta:
        db_table = "alerts"
        indexes = [
            models.Index(fields=["project", "-id"], name="alerts_newest"),
            models.Index(fields=["resolved_at"], name="alerts_by_age"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "rule_id"], condition=Q(state__in=["pending", "firing"]), name="alerts_one_open"
            ),
            models.CheckConstraint(
                condition=Q(state="pending", fired_at=None, resolved_at=None)
                | Q(state="firing", fired_at__isnull=False, resolved_at=None)
                | Q(state="resolved", fired_at__isnull=False, resolved_at__gte=F("fired_at")),
                name="alerts_state",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule_name} {self.state}"
