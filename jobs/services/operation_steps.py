"""Carrying out operations: step by step, each one transaction that also moves the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from dlq.models import DeadLetter
from dlq.services import discard_many
from jobs.events import OPERATION, tell
from jobs.lifecycle.cancel import cancel_jobs
from jobs.lifecycle.requeue import requeue_job
from jobs.models import Operation
from jobs.selectors.operations import next_rows, step_size
from jobs.services.dead_letters import resolve_letter
from jobs.services.operations import UNENDED
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import session
from scheduler_project.lib.errors import DomainError
from scheduler_project.lib.sql import past_deadlocks

log = logs.get(__name__)

Action = Operation.Action
#: Rows of one step at most; fewer where each is handled by a verb of its own.
STEP, STEP_ONE_BY_ONE = 500, 100


@dataclass(slots=True)
class Tally:
    """What became of the rows of a step."""

    changed: int = 0
    skipped: int = 0
    failed: int = 0
    error: str = ""


def unended_ids() -> list[UUID]:
    """Operations that are not over, the oldest first."""
    return list(Operation.objects.filter(state__in=UNENDED).order_by("id").values_list("id", flat=True))


def run_step(operation_id: UUID) -> bool:
    """Do the next step of an operation; is there more to do? Whoever else is at the same one is left alone."""
    return past_deadlocks(lambda: _step(operation_id))


def _step(operation_id: UUID) -> bool:
    with transaction.atomic():
        rows = Operation.objects.select_for_update(skip_locked=True, no_key=True)
        operation = rows.filter(pk=operation_id, state__in=UNENDED).first()
        if operation is None:
            return False
        one_by_one = operation.action in (Action.RETRY, Action.REDRIVE)
        size = step_size(operation, STEP_ONE_BY_ONE if one_by_one else STEP)
        found = next_rows(operation, size, operation.created_at)
        tally = _handled(operation, found.ids)
        _move(operation, len(found.ids), tally, found.cursor)
        return found.cursor is not None


def _move(operation: Operation, count: int, tally: Tally, cursor: UUID | None) -> None:
    changes: dict[str, object] = {
        "matched": F("matched") + count,
        "changed": F("changed") + tally.changed,
        "skipped": F("skipped") + tally.skipped,
        "failed": F("failed") + tally.failed,
        "started_at": Coalesce("started_at", Now()),
        "state": Operation.State.RUNNING,
    }
    if tally.error:
        changes["last_error"] = tally.error
    if cursor is None:
        changes.update(state=Operation.State.COMPLETED, ended_at=Now())
    else:
        changes["cursor"] = cursor
    Operation.objects.filter(pk=operation.pk).update(**changes)
    tell(OPERATION, operation.project_id, operation.pk, "progressed" if cursor else "completed")


def _handled(operation: Operation, ids: Sequence[UUID]) -> Tally:
    together: dict[str, Callable[[Sequence[UUID]], int]] = {
        Action.CANCEL: lambda some: len(cancel_jobs(some, reason=operation.reason or "Cancelled by an operation.")),
        Action.DISCARD: lambda some: discard_many(some, by=operation.created_by_id),
    }
    tally = Tally()
    if not ids:
        return tally
    many = together.get(operation.action)
    if many is not None and _try_all(many, ids, tally):
        return tally
    for id_ in ids:
        _try_one(operation, many, id_, tally)
    return tally


def _try_all(many: Callable[[Sequence[UUID]], int], ids: Sequence[UUID], tally: Tally) -> bool:
    """All in one statement; False if the database refuses one of them."""
    try:
        with transaction.atomic():
            tally.changed = many(ids)
    except DatabaseError as error:
        if session() is None:
            raise
        log.warning("operation_step_refused", error=str(error).splitlines()[0])
        return False
    tally.skipped = len(ids) - tally.changed
    return True


def _try_one(operation: Operation, many: Callable[[Sequence[UUID]], int] | None, id_: UUID, tally: Tally) -> None:
    try:
        with transaction.atomic():
            done = many([id_]) if many is not None else _queue_again(operation, id_)
    except DomainError:
        done = 0  # somebody else decided meanwhile
    except DatabaseError as error:
        if session() is None:
            raise
        tally.failed += 1
        tally.error = str(error).splitlines()[0][:500]
        log.error("operation_row_failed", operation_id=str(operation.pk), row_id=str(id_), error=tally.error)
        return
    tally.changed += done
    tally.skipped += not done


def _queue_again(operation: Operation, id_: UUID) -> int:
    if operation.action == Action.RETRY:
        requeue_job(id_, by=operation.created_by_id)
        return 1
    letter = DeadLetter.objects.select_related("queue").filter(pk=id_).first()
    if letter is None:
        return 0
    resolve_letter(letter, DeadLetter.Resolution.REQUEUED, by=operation.created_by_id)
    return 1
