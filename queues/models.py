"""Queues and the policies by which their jobs are retried."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from orgs.models import Project
from scheduler_project.lib.ids import uuid7

MAX_ATTEMPTS = 1_000
MAX_DELAY_MS = 30 * 86_400_000
PRIORITY_BOUND = 10_000
MAX_CONCURRENCY = 100_000
MIN_VISIBILITY_SECS, MAX_VISIBILITY_SECS = 1, 86_400


class RetryPolicy(models.Model):
    """When a failed job runs again, and how often."""

    class Strategy(models.TextChoices):
        """How the delay grows with the attempts."""

        FIXED = "fixed", "Fixed"
        LINEAR = "linear", "Linear"
        EXPONENTIAL = "exponential", "Exponential"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="retry_policies")
    name = models.CharField(max_length=100)
    strategy = models.CharField(max_length=12, choices=Strategy, default=Strategy.EXPONENTIAL)
    base_delay_ms = models.BigIntegerField(
        default=1_000, validators=[MinValueValidator(0), MaxValueValidator(MAX_DELAY_MS)]
    )
    multiplier = models.FloatField(default=2.0, validators=[MinValueValidator(1.0), MaxValueValidator(100.0)])
    max_delay_ms = models.BigIntegerField(
        default=3_600_000, validators=[MinValueValidator(0), MaxValueValidator(MAX_DELAY_MS)]
    )
    max_attempts = models.PositiveIntegerField(
        default=5, validators=[MinValueValidator(1), MaxValueValidator(MAX_ATTEMPTS)]
    )
    jitter = models.BooleanField(default=True, help_text="Spread the delay by half to one and a half.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "retry_policies"
        verbose_name_plural = "retry policies"
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="retry_policies_name_in_project"),
            models.CheckConstraint(
                condition=Q(strategy__in=["fixed", "linear", "exponential"]), name="retry_policies_strategy"
            ),
            models.CheckConstraint(
                condition=Q(base_delay_ms__range=(0, MAX_DELAY_MS), max_delay_ms__range=(0, MAX_DELAY_MS)),
                name="retry_policies_delays",
            ),
            # Range, not just a lower bound: NaN sorts above every number.
            models.CheckConstraint(condition=Q(multiplier__range=(1.0, 100.0)), name="retry_policies_multiplier"),
            models.CheckConstraint(condition=Q(max_attempts__range=(1, MAX_ATTEMPTS)), name="retry_policies_attempts"),
        ]

    def __str__(self) -> str:
        return self.name


class Queue(models.Model):
    """A line of jobs with its own limits. ``max_concurrency`` holds over all workers together; empty is no limit."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="queues")
    name = models.CharField(max_length=100)
    priority = models.IntegerField(default=0, help_text="Queues with a higher number are served first.")
    max_concurrency = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(MAX_CONCURRENCY)]
    )
    is_paused = models.BooleanField(default=False)
    paused_reason = models.CharField(max_length=500, blank=True)
    default_retry_policy = models.ForeignKey(
        RetryPolicy, models.PROTECT, null=True, blank=True, related_name="queues", db_constraint=False
    )
    visibility_timeout_secs = models.PositiveIntegerField(
        default=60, validators=[MinValueValidator(MIN_VISIBILITY_SECS), MaxValueValidator(MAX_VISIBILITY_SECS)]
    )
    rate_limit = models.PositiveIntegerField(null=True, blank=True, help_text="Jobs started in each period, at most.")
    rate_period_secs = models.PositiveIntegerField(null=True, blank=True)
    max_concurrency_per_key = models.PositiveIntegerField(
        default=1,
        db_default=1,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_CONCURRENCY)],
        help_text="Jobs with the same concurrency key in flight at once, at most.",
    )
    has_keys = models.BooleanField(
        default=False, db_default=False, editable=False, help_text="A job with a concurrency key was submitted to it."
    )
    is_gated = models.GeneratedField(
        expression=models.Case(
            models.When(Q(has_keys=True) | Q(rate_limit__isnull=False), then=True), default=models.Value(False)
        ),
        output_field=models.BooleanField(),
        db_persist=True,
        help_text="Claims look at more than places: a rate or concurrency keys.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "queues"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(deleted_at=None), name="queues_name_in_project"
            ),
            models.CheckConstraint(
                condition=Q(max_concurrency=None) | Q(max_concurrency__range=(1, MAX_CONCURRENCY)),
                name="queues_max_concurrency",
            ),
            models.CheckConstraint(
                condition=Q(max_concurrency_per_key__range=(1, MAX_CONCURRENCY)), name="queues_max_concurrency_per_key"
            ),
            models.CheckConstraint(
                condition=Q(priority__range=(-PRIORITY_BOUND, PRIORITY_BOUND)), name="queues_priority"
            ),
            models.CheckConstraint(
                condition=Q(visibility_timeout_secs__range=(MIN_VISIBILITY_SECS, MAX_VISIBILITY_SECS)),
                name="queues_visibility_timeout",
            ),
            models.CheckConstraint(
                condition=Q(rate_limit=None, rate_period_secs=None) | Q(rate_limit__gte=1, rate_period_secs__gte=1),
                name="queues_rate_limit",
            ),
        ]

    def __str__(self) -> str:
        return self.name
