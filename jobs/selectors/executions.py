"""What happened in a job's attempts, and what they logged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from jobs.models import Job, JobExecution, JobLog
from jobs.states import ExecutionStatus, JobStatus


def list_executions(job: Job, rows: slice, *, below: int | None = None) -> Sequence[JobExecution]:
    """A job's attempts, the latest first; the one that runs now comes before those that ended.

    History is written when an attempt ends: what stands in the first place while the job runs is made from the job's
    own row, has no id and is never stored.

    Args:
        below: only attempts with a lower fencing number, which is those claimed before it.
    """
    # Not by attempt number: that starts again when a job is requeued.
    past = JobExecution.objects.filter(job=job).order_by("-fencing_number")
    if below is not None:
        return list(past.filter(fencing_number__lt=below)[rows])
    if job.status != JobStatus.RUNNING:
        return list(past[rows])
    if rows.start == 0:
        return [_running(job), *past[: rows.stop - 1]]
    return list(past[rows.start - 1 : rows.stop - 1])


def list_logs(job: Job) -> QuerySet[JobLog]:
    """What a job's attempts logged, the oldest line first."""
    return JobLog.objects.filter(job=job).order_by("ts", "id")


def _running(job: Job) -> JobExecution:
    # Its id will be the lease token, which is the right to end the attempt: not shown before it has ended.
    columns: dict[str, Any] = {
        "id": None,
        "project_id": job.project_id,
        "job_id": job.pk,
        "worker_id": job.locked_by,
        "attempt_number": job.attempt_count + 1,
        "fencing_number": job.fencing_number,
        "status": ExecutionStatus.RUNNING,
        "claimed_at": job.locked_at,
        "created_at": job.locked_at,
    }
    return JobExecution(**columns)
