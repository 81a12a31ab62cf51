"""Deciding about dead letters. Never moves a job: ``jobs.lifecycle.requeue`` does, and calls here."""

from __future__ import annotations

from uuid import UUID

from django.db.models.functions import Now

from dlq.models import DeadLetter
from scheduler_project.lib.errors import Conflict


def resolve_letters_of(job_id: UUID, *, by: UUID | None) -> bool:
    """Mark the open letter of a job as requeued; False if it has none. The caller holds the job's row."""
    return bool(
        DeadLetter.objects.filter(job_id=job_id, resolved=False).update(
            resolved=True, resolved_at=Now(), resolved_by_id=by, resolution_action=DeadLetter.Resolution.REQUEUED
        )
    )


def discard(letter_id: UUID, *, by: UUID | None) -> None:
    """Decide that the job stays dead.

    Raises:
        Conflict: somebody has decided already.
    """
    changed = DeadLetter.objects.filter(pk=letter_id, resolved=False).update(
        resolved=True, resolved_at=Now(), resolved_by_id=by, resolution_action=DeadLetter.Resolution.DISCARDED
    )
    if not changed:
        raise Conflict("This dead letter is resolved already.")
