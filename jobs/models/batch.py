"""Jobs that belong together and are counted together."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from orgs.models import Project
from scheduler_project.lib.ids import uuid7


class JobBatch(models.Model):
    """A batch. While it is open its counts are read from its jobs; the columns keep what was true when it ended."""

    class Status(models.TextChoices):
        """Where a batch is in its life."""

        OPEN = "open", "Open"
        RUNNING = "running", "Running"
        COMPLETED = "completed", "Completed"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="batches")
    name = models.CharField(max_length=200)
    total_jobs = models.PositiveIntegerField(default=0)
    completed_jobs = models.PositiveIntegerField(default=0)
    failed_jobs = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "job_batches"
        verbose_name_plural = "job batches"
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=["open", "running", "completed", "failed", "cancelled"]),
                name="job_batches_status",
            ),
            models.CheckConstraint(
                condition=Q(total_jobs__gte=models.F("completed_jobs") + models.F("failed_jobs")),
                name="job_batches_counts",
            ),
        ]

    def __str__(self) -> str:
        return self.name
