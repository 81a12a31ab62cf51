"""Cron schedules and the ledger of their due times."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from orgs.models import Project
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.ids import uuid7


class ScheduledJob(models.Model):
    """A cron line, or one moment, that submits a job at each of its times.

    ``next_run_at`` is computed from the time planned before it, never from the time it was fired at.
    """

    class GapPolicy(models.TextChoices):
        """A wall time that the clocks skip."""

        RUN_AFTER = "run_after", "Run right after the gap"
        SKIP = "skip", "Skip"

    class RepeatPolicy(models.TextChoices):
        """A wall time that comes twice."""

        FIRST = "first", "Run on the first pass"
        BOTH = "both", "Run on both"

    class MisfirePolicy(models.TextChoices):
        """Due times that passed while nobody could fire them."""

        RUN_ONCE = "run_once", "Run once, for the latest"
        SKIP = "skip", "Skip them"
        RUN_ALL = "run_all", "Run all, up to a cap"

    class OverlapPolicy(models.TextChoices):
        """A due time while the job of an earlier one has not ended."""

        ALLOW = "allow", "Run beside it"
        SKIP = "skip", "Skip"
        QUEUE_ONE = "queue_one", "Let one wait"
        CANCEL_RUNNING = "cancel_running", "Cancel the earlier one"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="scheduled_jobs")
    queue = models.ForeignKey(Queue, models.CASCADE, related_name="scheduled_jobs", db_constraint=False)
    name = models.CharField(max_length=200)
    cron_expression = models.CharField(max_length=120, blank=True, help_text="Empty for a single moment.")
    run_once_at = models.DateTimeField(null=True, blank=True)
    timezone = models.CharField(max_length=64, default="UTC")
    gap_policy = models.CharField(max_length=10, choices=GapPolicy, default=GapPolicy.RUN_AFTER)
    repeat_policy = models.CharField(max_length=10, choices=RepeatPolicy, default=RepeatPolicy.FIRST)
    misfire_policy = models.CharField(max_length=10, choices=MisfirePolicy, default=MisfirePolicy.RUN_ONCE)
    misfire_grace_secs = models.PositiveIntegerField(default=60, help_text="Later than this is a misfire.")
    misfire_cap = models.PositiveIntegerField(default=100, help_text="With run_all: at most so many.")
    overlap_policy = models.CharField(max_length=14, choices=OverlapPolicy, default=OverlapPolicy.ALLOW)
    starts_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(null=True, blank=True)
    jitter_secs = models.PositiveIntegerField(default=0, help_text="The job is due up to so much later.")
    max_fires = models.PositiveIntegerField(null=True, blank=True)
    timeout_s = models.FloatField(null=True, blank=True, help_text="How long an attempt of its jobs may take.")
    job_type = models.CharField(max_length=200)
    payload_template = models.JSONField(default=dict)
    retry_policy = models.ForeignKey(RetryPolicy, models.PROTECT, null=True, related_name="+", db_constraint=False)
    is_active = models.BooleanField(default=True)
    is_paused = models.BooleanField(default=False)
    paused_reason = models.CharField(max_length=500, blank=True)
    paused_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    paused_until = models.DateTimeField(null=True, blank=True)
    next_run_at = models.DateTimeField(null=True)
    last_run_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=500, blank=True)
    last_error_at = models.DateTimeField(null=True)
    tzdata_version = models.CharField(max_length=20, blank=True, help_text="What next_run_at was computed with.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "scheduled_jobs"
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="scheduled_jobs_name_in_project"),
            models.CheckConstraint(
                condition=Q(
                    gap_policy__in=["run_after", "skip"],
                    repeat_policy__in=["first", "both"],
                    misfire_policy__in=["run_once", "skip", "run_all"],
                    overlap_policy__in=["allow", "skip", "queue_one", "cancel_running"],
                ),
                name="scheduled_jobs_policies",
            ),
            models.CheckConstraint(
                condition=~Q(cron_expression="") | Q(run_once_at__isnull=False), name="scheduled_jobs_has_a_time"
            ),
        ]
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

    class Reason(models.TextChoices):
        """Why it was skipped, or fired out of turn."""

        PAUSED = "paused", "Paused"
        OVERLAP = "overlap", "The earlier job has not ended"
        MISFIRE = "misfire", "Nobody could fire it in time"
        LIMIT = "limit", "It has fired as often as it may"
        MANUAL = "manual", "Triggered by hand"
        BACKFILL = "backfill", "Run later by a backfill"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    scheduled_job = models.ForeignKey(ScheduledJob, models.CASCADE, related_name="fires", db_constraint=False)
    due_at = models.DateTimeField()
    outcome = models.CharField(max_length=8, choices=Outcome)
    reason = models.CharField(max_length=12, choices=Reason, blank=True)
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
        indexes = [
            models.Index(fields=["scheduled_job", "-due_at"], name="schedule_fires_newest"),
            models.Index(fields=["project", "decided_at"], condition=Q(reason="misfire"), name="schedule_fires_missed"),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} {self.due_at}"
