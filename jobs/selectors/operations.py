"""Operations as answers show them, and the rows that one looks at next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from dlq.models import DeadLetter
from jobs.models import Job, Operation
from jobs.states import IN_FLIGHT, TERMINAL, WAITING, JobStatus
from orgs.access import Actor, get_visible, visible
from orgs.models import Role
from queues.models import Queue
from scheduler_project.lib.ids import LOWEST

Action = Operation.Action

#: The states of jobs that an action is for, and those it takes unless told.
ALLOWED: dict[str, Sequence[str]] = {
    Action.CANCEL: sorted(WAITING | IN_FLIGHT),
    Action.RETRY: sorted(TERMINAL),
}
DEFAULTS: dict[str, Sequence[str]] = {
    Action.CANCEL: sorted(WAITING | IN_FLIGHT),
    Action.RETRY: sorted({JobStatus.FAILED, JobStatus.DEAD_LETTER}),
}
#: With a type so many rows are looked at in one step: no index holds types.
LOOK = 5_000
#: Rows of all the index probes of one step together.
_MOST_PROBED = 20_000


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a step, and where the next one goes on: None when there are no more."""

    ids: list[UUID]
    cursor: UUID | None


def is_about_letters(action: str) -> bool:
    """Does the action decide about dead letters, not about jobs?"""
    return action in (Action.REDRIVE, Action.DISCARD)


def canary_state(operation: Operation) -> str | None:
    """Where an operation's canary is: pending, waiting (queued again, not all completed), passed, failed; None without.

    One that ended before its canary was queued has none any more to wait for, and stays pending.
    """
    if operation.canary is None:
        return None
    if operation.canary_passed_at is not None:
        return "passed"
    if operation.state == Operation.State.STOPPED:
        return "failed"
    return "waiting" if len(operation.canary_jobs or ()) >= operation.canary else "pending"


def canary_jobs(operation: Operation) -> list[Job]:
    """The jobs of its canary that are not archived, in the order in which they were queued again."""
    ids = operation.canary_jobs or ()
    return list(Job.objects.without_payload().filter(pk__in=ids).order_by("pk")) if ids else []


def list_operations(actor: Actor, project_id: UUID | None = None) -> QuerySet[Operation]:
    """The operations an actor sees, newest first, without their lists of ids."""
    operations = visible(Operation.objects.defer("ids"), actor, "project").order_by("-id")
    return operations if project_id is None else operations.filter(project_id=project_id)


def get_operation(actor: Actor, operation_id: UUID, *, needs: Role) -> Operation:
    """One operation. Raises NotFound or Forbidden."""
    operations = Operation.objects.filter(pk=operation_id)
    return get_visible(operations, actor, "project", needs=needs, what="operation")


def next_rows(operation: Operation, limit: int, frozen_at: datetime) -> Found:
    """Up to ``limit`` rows that the operation is for, behind its cursor."""
    if operation.ids is not None:
        return _listed(operation, limit)
    after = operation.cursor or UUID(operation.filter.get("from_id", str(LOWEST)))
    looks = LOOK if operation.filter.get("job_type") else limit
    seen = (_letters if is_about_letters(operation.action) else _jobs)(operation, after, looks, frozen_at)
    matching = [id_ for id_, is_match in seen if is_match]
    if len(matching) > limit:
        return Found(matching[:limit], matching[limit - 1])
    return Found(matching, seen[-1][0] if seen and len(seen) == looks else None)


def _listed(operation: Operation, limit: int) -> Found:
    left = [UUID(text) for text in operation.ids or () if operation.cursor is None or UUID(text) > operation.cursor]
    chosen = left[:limit]
    mine: QuerySet[Any] = (DeadLetter if is_about_letters(operation.action) else Job).objects.filter(pk__in=chosen)
    ids = sorted(mine.filter(project_id=operation.project_id).values_list("pk", flat=True))
    return Found(ids, chosen[-1] if len(left) > limit else None)


def _jobs(operation: Operation, after: UUID, looks: int, frozen_at: datetime) -> list[tuple[UUID, bool]]:
    status = operation.filter.get("status")
    return Job.objects.for_operation(
        queue_ids=_queue_ids(operation),
        statuses=[status] if status else list(DEFAULTS[operation.action]),
        after_id=after,
        until_id=operation.until_id,
        frozen_at=frozen_at,
        job_type=operation.filter.get("job_type"),
        limit=looks,
    )


def _letters(operation: Operation, after: UUID, looks: int, frozen_at: datetime) -> list[tuple[UUID, bool]]:
    letters = DeadLetter.objects.filter(
        queue_id__in=_queue_ids(operation),
        resolved=False,
        moved_at__lte=frozen_at,
        id__gt=after,
        id__lte=operation.until_id,
    )
    if moved_from := operation.filter.get("moved_from"):
        letters = letters.filter(moved_at__gte=moved_from)
    if moved_to := operation.filter.get("moved_to"):
        letters = letters.filter(moved_at__lt=moved_to)
    wanted = operation.filter.get("job_type")
    rows = letters.order_by("id").values_list("id", "job_type")[:looks]
    return [(id_, wanted is None or job_type == wanted) for id_, job_type in rows]


def _queue_ids(operation: Operation) -> list[UUID]:
    queue_id = operation.filter.get("queue_id")
    if queue_id:
        return [UUID(queue_id)]
    return list(Queue.objects.filter(project_id=operation.project_id).values_list("pk", flat=True))


def step_size(operation: Operation, most: int) -> int:
    """Rows of one step: fewer in a project of many queues, each of which is probed for as many."""
    if operation.ids is not None or operation.filter.get("queue_id"):
        return most
    queues = max(1, Queue.objects.filter(project_id=operation.project_id).count())
    return min(most, max(20, _MOST_PROBED // (queues * len(DEFAULTS.get(operation.action, (1,))))))
