"""What happened in each attempt: one row when it ended, and the lines it logged."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.models.job import Job
from jobs.states import ExecutionStatus, LogLevel
from orgs.models import Project


class JobExecution(models.Model):
    """One attempt that has ended. Its id is the lease token it ran under, so it can not be ended twice.

    ``attempt_number`` repeats when an attempt was given back unused; ``fencing_number`` never does.
    """

    Status = ExecutionStatus

    id = models.UUIDField(primary_key=True, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    job = models.ForeignKey(Job, models.CASCADE, related_name="executions", db_constraint=False, db_index=False)
    worker_id = models.UUIDField(null=True)
    attempt_number = models.PositiveIntegerField()
    fencing_number = models.BigIntegerField()
    status = models.CharField(max_length=12, choices=ExecutionStatus)
    claimed_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, help_text="Empty if the handler was never begun, or nobody knows.")
    finished_at = models.DateTimeField()
    duration_ms = models.FloatField(null=True)
    error_message = models.TextField(null=True)  # noqa: DJ001 - null is "no error"
    error_stack = models.TextField(null=True)  # noqa: DJ001
    result = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "job_executions"
        indexes = [
            models.Index(fields=["job", "attempt_number"], name="executions_of_job"),
            models.Index(
                fields=["project", "-id"], condition=Q(status__in=["failed", "lost"]), name="executions_failed"
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=ExecutionStatus.values), name="executions_status"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt_number}: {self.status}"


class JobLog(models.Model):
    """One line a handler logged. ``job`` stands beside ``execution`` on purpose: tailing a job needs no join.

    The table is partitioned by month of ``ts``; old months are dropped, never deleted (migration 0002).
    """

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    execution_id = models.UUIDField()
    job = models.ForeignKey(Job, models.CASCADE, related_name="logs", db_constraint=False, db_index=False)
    ts = models.DateTimeField(db_default=Now())
    level = models.CharField(max_length=8, choices=LogLevel, default=LogLevel.INFO)
    message = models.TextField()

    class Meta:
        db_table = "job_logs"
        managed = False

    def __str__(self) -> str:
        return self.message
