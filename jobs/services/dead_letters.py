"""What people decide about dead letters; here because a requeued letter moves a job."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from dlq.models import DeadLetter
from dlq.services import discard
from jobs.events import DEAD_LETTER, tell
from jobs.lifecycle.requeue import requeue_job, requeue_jobs
from jobs.lifecycle.submit import submit_job
from jobs.models import Job
from jobs.new_job import NewJob
from scheduler_project.lib.errors import Conflict, DomainError

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


def redrive(letter_ids: Sequence[UUID], *, by: UUID | None) -> list[UUID]:
    """Queue the jobs of letters again, in a fixed number of statements as long as the jobs are kept; these jobs.

    Letters that somebody decided about before, or whose job can not run again, are left alone.
    """
    is_open = DeadLetter.objects.filter(pk__in=letter_ids, resolved=False).order_by("pk")
    letters = list(is_open.values_list("pk", "project_id", "job_id"))
    kept = set(Job.objects.filter(pk__in=[job_id for _, _, job_id in letters]).values_list("pk", flat=True))
    again = set(requeue_jobs([job_id for _, _, job_id in letters if job_id in kept], by=by))
    done = [job_id for _, _, job_id in letters if job_id in again]
    for id_, project_id, job_id in letters:
        if job_id in again:
            tell(DEAD_LETTER, project_id, id_, DeadLetter.Resolution.REQUEUED)
        elif job_id not in kept:
            done += _redrive_purged(id_, by)
    return done


def _redrive_purged(letter_id: UUID, by: UUID | None) -> list[UUID]:
    letter = DeadLetter.objects.select_related("queue").get(pk=letter_id)
    try:
        again = resolve_letter(letter, DeadLetter.Resolution.REQUEUED, by=by)
    except DomainError:
        return []
    return [again] if again else []


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
