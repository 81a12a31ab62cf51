"""cancel: waiting jobs end; running ones are asked to stop, and their attempt's end makes them cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from jobs.events import jobs_changed
from jobs.hints import CANCEL, WORK, hint
from jobs.models import Job
from jobs.states import JobStatus
from scheduler_project.lib.errors import Conflict
from scheduler_project.lib.sql import past_deadlocks


def cancel_job(job_id: UUID, *, reason: str) -> JobStatus:
    """Cancel one job; the status says whether it has ended or a worker was asked (claimed, running).

    Once this was answered the job can no longer complete, fail or be retried: whatever its attempt brings, the job
    ends as cancelled.

    Raises:
        Conflict: it has ended already.
    """
    outcome = cancel_jobs([job_id], reason=reason).get(job_id)
    if outcome is None:
        raise Conflict("The job has ended already and can not be cancelled.")
    return outcome


def cancel_jobs(job_ids: Sequence[UUID], *, reason: str) -> dict[UUID, JobStatus]:
    """Cancel many; jobs that have ended are missing from the answer."""
    ids = [str(job_id) for job_id in job_ids]
    cancelled, released = past_deadlocks(lambda: Job.claims.cancel(ids=ids, reason=reason))
    outcome = {UUID(job_id): JobStatus(status) for job_id, status in cancelled}
    for queue_id in {row[0] for row in released}:
        hint(WORK, queue_id)
    for job_id, status in outcome.items():
        if status != JobStatus.CANCELLED:
            hint(CANCEL, str(job_id))
    jobs_changed(outcome, parents=outcome if released else ())
    return outcome


def cancel_from(job_id: UUID, *, reason: str) -> dict[UUID, JobStatus]:
    """Cancel a job and all that wait for it, directly or through others; those that have ended are missing.

    Raises:
        Conflict: all of them have ended already.
    """
    downstream = [UUID(id_) for id_ in Job.objects.descendants(id_=str(job_id))]
    outcome = cancel_jobs([job_id, *downstream], reason=reason)
    if not outcome:
        raise Conflict("The job and all that wait for it have ended already.")
    return outcome
