"""cancel: waiting jobs end; running ones are asked to stop, and their attempt's end makes them cancelled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

from django.db import OperationalError
from psycopg.errors import DeadlockDetected

from jobs.hints import CANCEL, WORK, hint
from jobs.models import Job
from jobs.states import JobStatus
from scheduler_project.lib.errors import Conflict
from scheduler_project.lib.sql import Row, in_transaction

TRIES = 5


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
    cancelled, released = _cancel([str(i) for i in job_ids], reason)
    outcome = {UUID(job_id): JobStatus(status) for job_id, status in cancelled}
    for queue_id in {row[0] for row in released}:
        hint(WORK, queue_id)
    for job_id, status in outcome.items():
        if status != JobStatus.CANCELLED:
            hint(CANCEL, str(job_id))
    return outcome


def _cancel(ids: list[str], reason: str) -> tuple[list[Row], list[Row]]:
    """One round trip, tried again if it met another one head-on; not inside a caller's transaction, which is broken."""
    for attempt in range(1, TRIES + 1):
        try:
            return Job.claims.cancel(ids=ids, reason=reason)
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected) or attempt == TRIES or in_transaction():
                raise
            time.sleep(0.01 * attempt)
    raise AssertionError("unreachable")
