"""Deciding about dead letters. Never moves a job: ``jobs.lifecycle.requeue`` does, and calls here."""

from __future__ import annotations

from collections.abc import Sequence
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


def resolve_letters_of_many(job_ids: Sequence[UUID], *, by: UUID | None) -> set[UUID]:
    """Mark the open letters of jobs as requeued; the jobs that had one. The caller holds the jobs' rows."""
    letters = DeadLetter.objects.filter(job_id__in=job_ids, resolved=False).order_by("pk")
    found = dict(letters.select_for_update(no_key=True, of=("self",)).values_list("pk", "job_id"))
    DeadLetter.objects.filter(pk__in=found).update(
        resolved=True, resolved_at=Now(), resolved_by_id=by, resolution_action=DeadLetter.Resolution.REQUEUED
    )
    return set(found.values())


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


def discard_many(letter_ids: Sequence[UUID], *, by: UUID | None) -> int:
    """Discard those of the letters that nobody has decided about; how many."""
    # In the order of their ids: of two who discard at once none waits for the other in a circle.
    still_open = DeadLetter.objects.filter(pk__in=letter_ids, resolved=False).order_by("pk")
    ids = list(still_open.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
    return DeadLetter.objects.filter(pk__in=ids).update(
        resolved=True, resolved_at=Now(), resolved_by_id=by, resolution_action=DeadLetter.Resolution.DISCARDED
    )
