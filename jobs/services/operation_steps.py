"""Carrying out operations: step by step, each one transaction that also moves the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from dlq.services import discard_many
from jobs.events import OPERATION, tell
from jobs.lifecycle.cancel import cancel_jobs
from jobs.lifecycle.requeue import requeue_jobs
from jobs.models import Operation
from jobs.selectors.operations import next_rows, step_size
from jobs.services.dead_letters import redrive
from jobs.services.operation_care import leave_of, next_at_of
from jobs.services.operations import CAREFUL, UNENDED
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import session
from scheduler_project.lib.sql import past_deadlocks

log = logs.get(__name__)

Action = Operation.Action
#: Rows of one step at most; fewer where jobs run again for it: between steps it hears that it is to stop.
STEP, STEP_WITH_CARE = 500, 100


@dataclass(slots=True)
class Tally:
    """What became of the rows of a step."""

    changed: int = 0
    skipped: int = 0
    failed: int = 0
    error: str = ""
    #: The jobs that were queued again.
    job_ids: list[UUID] = field(default_factory=list)


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
        most = STEP_WITH_CARE if operation.action in CAREFUL else STEP
        leave = leave_of(operation, now, step_size(operation, most))
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
        changes["canary_jobs"] = [*(operation.canary_jobs or ()), *map(str, tally.job_ids)]
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
    tally = Tally()
    if ids and not _try_all(operation, ids, tally):
        for id_ in ids:
            _try_one(operation, id_, tally)
    tally.skipped = len(ids) - tally.changed - tally.failed
    return tally


def _do(operation: Operation, ids: Sequence[UUID]) -> tuple[int, list[UUID]]:
    """What the operation does, with some rows together; how many it changed, and the jobs that it queued again."""
    by = operation.created_by_id
    if operation.action == Action.CANCEL:
        return len(cancel_jobs(ids, reason=operation.reason or "Cancelled by an operation.")), []
    if operation.action == Action.DISCARD:
        return discard_many(ids, by=by), []
    again = requeue_jobs(ids, by=by) if operation.action == Action.RETRY else redrive(ids, by=by)
    return len(again), again


def _try_all(operation: Operation, ids: Sequence[UUID], tally: Tally) -> bool:
    """All together; False if the database refuses one of them."""
    try:
        with transaction.atomic():
            tally.changed, tally.job_ids = _do(operation, ids)
    except DatabaseError as error:
        if session() is None:
            raise
        log.warning("operation_step_refused", error=str(error).splitlines()[0])
        return False
    return True


def _try_one(operation: Operation, id_: UUID, tally: Tally) -> None:
    try:
        with transaction.atomic():
            done, again = _do(operation, [id_])
    except DatabaseError as error:
        if session() is None:
            raise
        tally.failed += 1
        tally.error = str(error).splitlines()[0][:500]
        log.error("operation_row_failed", operation_id=str(operation.pk), row_id=str(id_), error=tally.error)
        return
    tally.changed += done
    tally.job_ids += again
