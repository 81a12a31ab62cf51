"""Carrying out operations: step by step, each one transaction that also moves the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
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
from jobs.services.operation_care import leave_of, next_at_of
from jobs.services.operations import CAREFUL, UNENDED
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
    #: The jobs that were queued again.
    job_ids: list[str] = field(default_factory=list)


def unended_ids() -> list[UUID]:
    """Operations that are not over, the oldest first."""
    return list(Operation.objects.filter(state__in=UNENDED).order_by("id").values_list("id", flat=True))


def run_step(operation_id: UUID) -> float | None:
    """Do the next step of an operation. Whoever else is at the same one is left alone.

    Returns:
        in how many seconds there is more to do: 0.0 if at once, more if its pace says so; None if it is over, or waits
        for something whose end nobody knows.
    """
    return past_deadlocks(lambda: _step(operation_id))


def _step(operation_id: UUID) -> float | None:
    with transaction.atomic():
        rows = Operation.objects.select_for_update(skip_locked=True, no_key=True)
        operation = rows.filter(pk=operation_id, state__in=UNENDED).annotate(now=Now()).first()
        if operation is None:
            return None
        now: datetime = operation.now
        one_by_one = operation.action in CAREFUL
        leave = leave_of(operation, now, step_size(operation, STEP_ONE_BY_ONE if one_by_one else STEP))
        if leave.has_passed:
            Operation.objects.filter(pk=operation_id).update(canary_passed_at=now)
        if leave.stopped_because:
            _stop(operation, leave.stopped_because)
        if leave.rows == 0:
            return leave.wait_s
        found = next_rows(operation, leave.rows, operation.created_at)
        tally = _handled(operation, found.ids)
        _take_care(operation, tally, now, is_canary=operation.canary_passed_at is None and not leave.has_passed)
        _move(operation, len(found.ids), tally, found.cursor)
        return None if found.cursor is None else 0.0


def _stop(operation: Operation, why: str) -> None:
    Operation.objects.filter(pk=operation.pk).update(state=Operation.State.STOPPED, ended_at=Now(), stopped_because=why)
    log.warning("operation_stopped", operation_id=str(operation.pk), why=why)
    tell(OPERATION, operation.project_id, operation.pk, "stopped")


def _take_care(operation: Operation, tally: Tally, now: datetime, *, is_canary: bool) -> None:
    """Keep what the next step's leave depends on, in the transaction of this one."""
    if operation.canary is None and operation.pace is None:
        return
    changes: dict[str, object] = {"next_at": next_at_of(operation, now, tally.changed)}
    if operation.canary is not None and is_canary:
        changes["canary_jobs"] = [*(operation.canary_jobs or ()), *tally.job_ids]
    Operation.objects.filter(pk=operation.pk).update(**changes)


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
            again = None if many is not None else _queue_again(operation, id_)
            done = many([id_]) if many is not None else int(again is not None)
    except DomainError:
        done, again = 0, None  # somebody else decided meanwhile
    except DatabaseError as error:
        if session() is None:
            raise
        tally.failed += 1
        tally.error = str(error).splitlines()[0][:500]
        log.error("operation_row_failed", operation_id=str(operation.pk), row_id=str(id_), error=tally.error)
        return
    tally.changed += done
    tally.skipped += not done
    if again is not None:
        tally.job_ids.append(str(again))


def _queue_again(operation: Operation, id_: UUID) -> UUID | None:
    """The job that is queued again, None if there is none any more."""
    if operation.action == Action.RETRY:
        requeue_job(id_, by=operation.created_by_id)
        return id_
    letter = DeadLetter.objects.select_related("queue").filter(pk=id_).first()
    if letter is None:
        return None
    return resolve_letter(letter, DeadLetter.Resolution.REQUEUED, by=operation.created_by_id)
