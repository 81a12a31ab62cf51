"""What an actor sees of dead letters."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from dlq.models import DeadLetter
from orgs.access import Actor, get_visible, project_ids
from orgs.models import Role


def list_letters(actor: Actor, *, queue_id: UUID | None = None, resolved: bool | None = None) -> QuerySet[DeadLetter]:
    """The letters an actor sees, newest first, without their payloads. Reads his projects at once.

    With a queue its caller has made sure that the actor sees it.
    """
    letters = DeadLetter.objects.defer("payload_snapshot").order_by("-id")
    if queue_id is None:
        letters = letters.filter(project_id__in=project_ids(actor))
    else:
        letters = letters.filter(queue_id=queue_id)
    return letters if resolved is None else letters.filter(resolved=resolved)


def get_letter(actor: Actor, letter_id: UUID, *, needs: Role) -> DeadLetter:
    """One letter with its payload and queue. Raises NotFound or Forbidden."""
    letters = DeadLetter.objects.filter(pk=letter_id).select_related("queue")
    return get_visible(letters, actor, "project", needs=needs, what="dead letter")
