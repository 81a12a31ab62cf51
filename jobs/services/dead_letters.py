"""What people decide about dead letters; here because a requeued letter moves a job."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from dlq.models import DeadLetter
from dlq.services import discard
from jobs.events import DEAD_LETTER, tell
from jobs.lifecycle.requeue import requeue_job
from jobs.lifecycle.submit import submit_job
from jobs.models import Job
from jobs.new_job import NewJob
from scheduler_project.lib.errors import Conflict

_RESOLVED = "This dead letter is resolved already."


def resolve_letter(letter: DeadLetter, action: str, *, by: UUID | None) -> UUID | None:
    """Carry out a decision once; the id of the job that is queued again, None if the letter was discarded.

    Raises:
        Conflict: somebody decided before, or the job has moved on.
    """
    if letter.resolved:
        raise Conflict(_RESOLVED)
    tell(DEAD_LETTER, letter.project_id, letter.pk, action)
    if action == DeadLetter.Resolution.DISCARDED:
        discard(letter.pk, by=by)
        return None
    if not Job.objects.filter(pk=letter.job_id).exists():
        return _submit_again(letter, by)
    requeue_job(letter.job_id, by=by)
    return letter.job_id


def _submit_again(letter: DeadLetter, by: UUID | None) -> UUID:
    """The job is purged; what the letter kept of it becomes a new one."""
    with transaction.atomic():
        mine = DeadLetter.objects.filter(pk=letter.pk, resolved=False).update(
            resolved=True, resolved_at=Now(), resolved_by_id=by, resolution_action=DeadLetter.Resolution.REQUEUED
        )
        if not mine:
            raise Conflict(_RESOLVED)
        return submit_job(
            letter.queue, NewJob(job_type=letter.job_type, payload=letter.payload_snapshot, is_stored=True)
        ).id
