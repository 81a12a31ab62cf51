"""requeue: an ended job gets a fresh budget of attempts; its executions stay."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from dlq.services import resolve_letters_of
from jobs.hints import WORK, hint
from jobs.models import Job
from jobs.states import TERMINAL, JobStatus
from scheduler_project.lib.errors import Conflict, NotFound


def requeue_job(job_id: UUID, *, by: UUID | None) -> None:
    """failed, dead_letter, completed, cancelled -> queued, once for each end.

    A dead letter of the job is resolved in the same transaction. Of two people who decide at once, one wins.

    Args:
        by: the user who decided, None for a machine.

    Raises:
        NotFound: no such job.
        Conflict: the job has not ended, its dead letter was discarded, or its queue was deleted.
    """
    with transaction.atomic():
        locked = Job.objects.select_for_update(no_key=True, of=("self",)).filter(pk=job_id)
        found = locked.values_list("status", "queue__name", "queue__deleted_at").first()
        if found is None:
            raise NotFound("There is no such job.")
        status, queue_name, queue_deleted_at = found
        if status not in TERMINAL:
            raise Conflict(f"The job is {status}: only a job that has ended can be queued again.")
        if queue_deleted_at is not None:
            raise Conflict(f"The queue {queue_name} was deleted: nobody would run the job.")
        if not resolve_letters_of(job_id, by=by) and status == JobStatus.DEAD_LETTER:
            raise Conflict("The dead letter of this job was discarded: the job can not be queued again.")
        [(_, queue_id)] = Job.claims.requeue(ids=[str(job_id)])
        hint(WORK, queue_id)
