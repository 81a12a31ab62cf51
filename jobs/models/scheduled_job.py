"""Cron schedules and the ledger of their due times."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from orgs.models import Project
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.ids import uuid7


class ScheduledJob(models.Model):
    """A cron line that submits a job at each of its times."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="scheduled_jobs")
    queue = models.ForeignKey(Queue, models.CASCADE, related_name="scheduled_jobs", db_constraint=False)
    name = models.CharField(max_length=200)
    cron_expression = models.CharField(max_length=120)
    timezone = models.CharField(max_length=64, default="UTC")
    job_type = models.CharField(max_length=200)
    payload_template = models.JSONField(default=dict)
    retry_policy = models.ForeignKey(RetryPolicy, models.PROTECT, null=True, related_name="+", db_constraint=False)
    is_active = models.BooleanField(default=True)
    next_run_at = models.DateTimeField(null=True)
    last_run_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "scheduled_jobs"
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="scheduled_jobs_name_in_project")]
        indexes = [
            models.Index(fields=["next_run_at"], condition=Q(is_active=True), name="scheduled_jobs_due"),
        ]

    def __str__(self) -> str:
        return self.name


class ScheduleFire(models.Model):
    """One due time of one schedule: fired with a job, or skipped with the reason. Unique by (schedule, due time)."""

    class Outcome(models.TextChoices):
        """What became of the due time."""

        FIRED = "fired", "Fired"
        SKIPPED = "skipped", "Skipped"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    scheduled_job = models.ForeignKey(ScheduledJob, models.CASCADE, related_name="fires", db_constraint=False)
    due_at = models.DateTimeField()
    outcome = models.CharField(max_length=8, choices=Outcome)
    reason = models.CharField(max_length=40, blank=True, help_text="Why it was skipped: paused, overlap, misfire.")
    job_id = models.UUIDField(null=True)
    late_ms = models.BigIntegerField(default=0)
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "schedule_fires"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "scheduled_job", "due_at"], name="schedule_fires_once_per_due_time"
            ),
            models.CheckConstraint(
                condition=Q(outcome="fired", job_id__isnull=False) | Q(outcome="skipped", job_id=None),
                name="schedule_fires_outcome",
            ),
        ]
        indexes = [models.Index(fields=["scheduled_job", "-due_at"], name="schedule_fires_newest")]

    def __str__(self) -> str:
        return f"{self.outcome} {self.due_at}"
