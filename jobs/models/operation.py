"""One decision about many jobs, carried out in steps."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from orgs.models import ApiKey, Project
from scheduler_project.lib.ids import uuid7


class Operation(models.Model):
    """Cancel, retry, redrive or discard all that a filter names, or a list of ids.

    What it applies to is frozen when it is made: ``filter`` holds absolute times, ``until_id`` the last row there was.
    Rows are handled in the order of their ids; ``cursor`` is the last one, moved in the transaction of its step, so
    that whoever goes on after a crash neither repeats nor leaves out anything.

    What queues jobs again may do so with care: ``canary`` of them first, the rest once those have completed, and no
    faster than ``pace``.
    """

    class Action(models.TextChoices):
        """What is done to each."""

        CANCEL = "cancel", "Cancel jobs"
        RETRY = "retry", "Queue ended jobs again"
        REDRIVE = "redrive", "Queue the jobs of dead letters again"
        DISCARD = "discard", "Discard dead letters"

    class State(models.TextChoices):
        """Where an operation is in its life."""

        PENDING = "pending", "Pending"
        RUNNING = "running", "Running"
        COMPLETED = "completed", "Completed"
        ABORTED = "aborted", "Aborted"
        STOPPED = "stopped", "Stopped"

    class Per(models.TextChoices):
        """What a pace is counted by."""

        SECOND = "second", "Second"
        MINUTE = "minute", "Minute"
        HOUR = "hour", "Hour"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    action = models.CharField(max_length=8, choices=Action)
    filter = models.JSONField(default=dict, help_text="queue_id, status, job_type, from_id.")
    ids = models.JSONField(null=True, help_text="Instead of a filter: the ids, in order.")
    until_id = models.UUIDField(help_text="The last row there was.")
    reason = models.CharField(max_length=500, blank=True)
    state = models.CharField(max_length=9, choices=State, default=State.PENDING)
    cursor = models.UUIDField(null=True, help_text="The last row that was looked at.")
    estimate = models.PositiveIntegerField(default=0)
    is_estimate_capped = models.BooleanField(default=False)
    matched = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=500, blank=True)
    canary = models.PositiveIntegerField(null=True, help_text="So many jobs first; the rest once they have completed.")
    canary_jobs = models.JSONField(null=True, help_text="The ids of those that were queued again so far.")
    canary_passed_at = models.DateTimeField(null=True)
    pace = models.PositiveIntegerField(null=True, help_text="So many jobs in each ``pace_per``.")
    pace_per = models.CharField(max_length=6, choices=Per, default=Per.MINUTE, db_default=Per.MINUTE)
    next_at = models.DateTimeField(null=True, help_text="By its pace nothing is done before.")
    stopped_because = models.CharField(
        max_length=500, blank=True, default="", db_default="", help_text="How its canary failed."
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    api_key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "operations"
        indexes = [
            models.Index(fields=["project", "-id"], name="operations_of_project"),
            models.Index(fields=["id"], condition=Q(state__in=["pending", "running"]), name="operations_unended"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(action__in=["cancel", "retry", "redrive", "discard"]), name="operations_action"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "running"], ended_at=None)
                | Q(state__in=["completed", "aborted", "stopped"], ended_at__isnull=False),
                name="operations_state",
            ),
            models.CheckConstraint(
                condition=Q(matched=F("changed") + F("skipped") + F("failed")), name="operations_counts"
            ),
            models.CheckConstraint(
                condition=Q(canary=None, pace=None) | Q(action__in=["retry", "redrive"]), name="operations_care"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"
