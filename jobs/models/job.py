"""The job: one piece of work, its place in the life cycle and, while it is in flight, its lease."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Least, Now
from django.db.models.lookups import IsNull

from jobs.managers import ClaimManager, JobQuerySet
from jobs.states import IN_FLIGHT, TERMINAL, JobStatus
from orgs.models import Project
from queues.models import MAX_ATTEMPTS, PRIORITY_BOUND, Queue, RetryPolicy
from scheduler_project.lib.ids import uuid7


class Job(models.Model):
    """A row is the truth about a job. Its status changes only in ``jobs.lifecycle``.

    While a job is in flight the row itself is the record of the running attempt; ``job_executions`` gets its row
    when the attempt ends, with the lease token as its id (ENGINE: history is written once).

    Keys, storage settings, the claim's index and the foreign keys that stay inside a project are in migration
    0002: Django has no words for them.
    """

    Status = JobStatus

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    queue = models.ForeignKey(Queue, models.CASCADE, related_name="jobs", db_constraint=False, db_index=False)
    scheduled_job = models.ForeignKey(
        "jobs.ScheduledJob", models.CASCADE, null=True, related_name="jobs", db_constraint=False, db_index=False
    )
    batch = models.ForeignKey(
        "jobs.JobBatch", models.CASCADE, null=True, related_name="jobs", db_constraint=False, db_index=False
    )
    job_type = models.CharField(max_length=200)
    payload = models.JSONField()
    priority = models.IntegerField(db_default=0)
    status = models.CharField(max_length=12, choices=JobStatus)
    run_at = models.DateTimeField(db_default=Now())
    idempotency_key = models.CharField(max_length=255, null=True)  # noqa: DJ001 - null is "none given", "" would be a key
    concurrency_key = models.CharField(max_length=255, null=True)  # noqa: DJ001 - null is "none given"
    circuit = models.CharField(max_length=300, null=True)  # noqa: DJ001 - null is "has no circuit breaker"
    retry_policy = models.ForeignKey(
        RetryPolicy, models.PROTECT, null=True, related_name="+", db_constraint=False, db_index=False
    )
    max_attempts_override = models.PositiveIntegerField(null=True)
    timeout_s = models.FloatField(
        null=True, help_text="How long one attempt may take; the handler's own limit holds too."
    )
    start_deadline = models.DateTimeField(null=True, help_text="Not begun by then, it is cancelled.")
    deadline = models.DateTimeField(null=True, help_text="No attempt begins after it.")
    attempt_count = models.PositiveIntegerField(db_default=0, help_text="Attempts used up; the running one not yet.")
    lost_count = models.PositiveSmallIntegerField(
        db_default=0, help_text="Of the attempts used, those whose process died."
    )
    fencing_number = models.BigIntegerField(db_default=0, help_text="Goes up by one with each claim.")
    is_blocked = models.BooleanField(db_default=False, help_text="Waits for a job it depends on.")
    has_dependants = models.BooleanField(db_default=False, help_text="Other jobs wait for this one.")
    locked_by = models.UUIDField(null=True, help_text="The worker that holds the lease.")
    locked_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    progress_percent = models.PositiveSmallIntegerField(null=True)
    progress_note = models.CharField(max_length=200, null=True)  # noqa: DJ001
    result = models.JSONField(null=True)
    error_message = models.TextField(null=True)  # noqa: DJ001 - null until something went wrong
    trace_id = models.CharField(max_length=64, db_default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())
    completed_at = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()
    claims = ClaimManager()

    class Meta:
        db_table = "jobs"
        base_manager_name = "objects"
        default_manager_name = "objects"
        indexes = [
            models.Index(fields=["queue", "-id"], name="jobs_of_queue"),
            models.Index(fields=["run_at", "id"], condition=Q(status="scheduled", is_blocked=False), name="jobs_due"),
            models.Index(fields=["queue"], condition=Q(status__in=["claimed", "running"]), name="jobs_in_flight"),
            models.Index(
                fields=["queue", "concurrency_key"],
                condition=Q(status__in=["claimed", "running"], concurrency_key__isnull=False),
                name="jobs_keyed_in_flight",
            ),
            models.Index(
                fields=["project", "circuit", "id"],
                condition=Q(status="queued", circuit__isnull=False),
                name="jobs_of_circuit",
            ),
            models.Index(fields=["queue"], condition=Q(status="scheduled", is_blocked=True), name="jobs_blocked"),
            models.Index(fields=["retry_policy"], condition=Q(retry_policy__isnull=False), name="jobs_of_policy"),
            models.Index(
                fields=["queue", "status", "-id"],
                condition=Q(status__in=sorted(TERMINAL)),
                name="jobs_ended",
            ),
            # Queued ones are found by jobs_ready: one more entry for each submission would be felt.
            models.Index(fields=["queue", "-id"], condition=Q(status="scheduled"), name="jobs_scheduled"),
            models.Index(fields=["batch", "status"], condition=Q(batch__isnull=False), name="jobs_of_batch"),
            models.Index(
                Least("deadline", "start_deadline"),
                condition=Q(status__in=["scheduled", "queued"]) & Q(IsNull(Least("deadline", "start_deadline"), False)),
                name="jobs_to_begin_by",
            ),
            models.Index(
                fields=["scheduled_job", "-id"], condition=Q(scheduled_job__isnull=False), name="jobs_of_schedule"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "queue", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="jobs_idempotency_key",
            ),
            models.CheckConstraint(condition=Q(status__in=JobStatus.values), name="jobs_status"),
            models.CheckConstraint(
                condition=Q(
                    Q(status__in=sorted(IN_FLIGHT)),
                    locked_by__isnull=False,
                    locked_at__isnull=False,
                    lease_token__isnull=False,
                    lease_expires_at__isnull=False,
                )
                | Q(
                    ~Q(status__in=sorted(IN_FLIGHT)),
                    locked_by=None,
                    locked_at=None,
                    lease_token=None,
                    lease_expires_at=None,
                ),
                name="jobs_lease_exactly_in_flight",
            ),
            models.CheckConstraint(
                condition=Q(status__in=sorted(TERMINAL), completed_at__isnull=False)
                | Q(~Q(status__in=sorted(TERMINAL)), completed_at=None),
                name="jobs_completed_at_exactly_when_ended",
            ),
            models.CheckConstraint(
                condition=Q(priority__range=(-PRIORITY_BOUND, PRIORITY_BOUND)), name="jobs_priority"
            ),
            models.CheckConstraint(
                condition=Q(timeout_s=None) | Q(timeout_s__range=(0.1, 604_800)), name="jobs_timeout"
            ),
            models.CheckConstraint(
                condition=Q(max_attempts_override=None) | Q(max_attempts_override__range=(1, MAX_ATTEMPTS)),
                name="jobs_max_attempts_override",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_type} {self.id}"
