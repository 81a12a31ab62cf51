"""Events on their way out of the house: who wants which, and those that nobody has been told of yet (ADR 26)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from orgs.models import Project
from scheduler_project.lib.ids import uuid7

MAX_URL_CHARS = 2_000
#: The queue of each project in which the notices to the outside are jobs.
NOTICES_QUEUE = "notifications"


class EventType(models.TextChoices):
    """What a subscription can ask for. Only what a person would want to be told; ADR 26 says what is missing."""

    JOB_DEAD_LETTER = "job.dead_letter", "A job became a dead letter"
    JOB_FAILED = "job.failed", "A job was given up by its handler"
    BATCH_FINISHED = "batch.finished", "A batch ended"
    SCHEDULE_MISSED = "schedule.missed", "A schedule missed due times"
    QUEUE_PAUSED = "queue.paused", "A queue was paused"
    QUEUE_RESUMED = "queue.resumed", "A queue was resumed"
    ALERT_FIRED = "alert.fired", "An alert fired"
    ALERT_RESOLVED = "alert.resolved", "An alert was resolved"


class EventSubscription(models.Model):
    """An address that wants to hear of some events of a project."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=100)
    url = models.CharField(max_length=MAX_URL_CHARS)
    types = ArrayField(models.CharField(max_length=30, choices=EventType), size=len(EventType))
    is_active = models.BooleanField(default=True)
    last_error = models.CharField(max_length=500, blank=True, help_text="Of the last delivery that was given up.")
    last_error_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "event_subscriptions"
        indexes = [
            # What the end of an attempt asks: does anybody in this project want to hear?
            models.Index(fields=["project"], condition=Q(is_active=True), name="event_subscriptions_active")
        ]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="event_subscriptions_name_in_project"),
            models.CheckConstraint(condition=~Q(types=[]), name="event_subscriptions_types"),
        ]

    def __str__(self) -> str:
        return self.name


class OutgoingEvent(models.Model):
    """Something that happened and that a subscription may want to hear of; gone once its deliveries are jobs.

    No foreign keys: it is written with the work it tells of and must never refuse it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project_id = models.UUIDField()
    type = models.CharField(max_length=30)
    at = models.DateTimeField(db_default=Now())
    queue_id = models.UUIDField(null=True, help_text="Of events about jobs and queues.")
    data = models.JSONField()

    class Meta:
        db_table = "outgoing_events"
        indexes = [models.Index(fields=["at"], name="outgoing_events_oldest")]

    def __str__(self) -> str:
        return f"{self.type} at {self.at}"
