"""Finished jobs past their retention, out of the hot table."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class ArchivedJob(models.Model):
    """A finished job as it was, in a table partitioned by month of ``completed_at`` (migration 0002)."""

    id = models.UUIDField(primary_key=True, editable=False)
    project_id = models.UUIDField()
    queue_id = models.UUIDField()
    scheduled_job_id = models.UUIDField(null=True)
    batch_id = models.UUIDField(null=True)
    job_type = models.CharField(max_length=200)
    payload = models.JSONField()
    priority = models.IntegerField()
    status = models.CharField(max_length=12)
    run_at = models.DateTimeField()
    idempotency_key = models.CharField(max_length=255, null=True)  # noqa: DJ001 - as in jobs
    attempt_count = models.PositiveIntegerField()
    result = models.JSONField(null=True)
    error_message = models.TextField(null=True)  # noqa: DJ001 - as in jobs
    trace_id = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField()
    archived_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "jobs_archive"
        managed = False

    def __str__(self) -> str:
        return f"{self.job_type} {self.id}"
