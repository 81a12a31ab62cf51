"""Jobs that belong together, are counted together and have something happen when they end."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from orgs.models import Project
from scheduler_project.lib.ids import uuid7


class JobBatch(models.Model):
    """A batch. While it runs its counts are read from its jobs; the columns keep what was true when it ended.

    A callback is ``{"queue_id", "job_type", "payload"}``: a job that is submitted once, when its moment has come.
    """

    class Status(models.TextChoices):
        """Where a batch is in its life: open takes jobs, running takes none any more."""

        OPEN = "open", "Open"
        RUNNING = "running", "Running"
        COMPLETED = "completed", "Completed"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="batches")
    parent = models.ForeignKey(
        "self", models.CASCADE, null=True, related_name="children", db_constraint=False, help_text="One level deep."
    )
    name = models.CharField(max_length=200)
    total_jobs = models.PositiveIntegerField(default=0)
    completed_jobs = models.PositiveIntegerField(default=0)
    failed_jobs = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    on_success = models.JSONField(null=True)
    on_end = models.JSONField(null=True)
    on_failure = models.JSONField(null=True)
    failure_noted_at = models.DateTimeField(null=True, help_text="When its first failure was seen.")
    callback_error = models.CharField(
        max_length=500, blank=True, db_default="", help_text="A callback that could not be submitted."
    )
    cancel_requested_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "job_batches"
        verbose_name_plural = "job batches"
        indexes = [
            models.Index(fields=["id"], condition=Q(status__in=["open", "running"]), name="job_batches_unended"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=["open", "running", "completed", "failed", "cancelled"]),
                name="job_batches_status",
            ),
            models.CheckConstraint(
                condition=Q(total_jobs__gte=F("completed_jobs") + F("failed_jobs")), name="job_batches_counts"
            ),
        ]

    def __str__(self) -> str:
        return self.name
