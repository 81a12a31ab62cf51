"""Operations: one decision about many jobs or dead letters, made once and carried out in steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from dlq.models import DeadLetter
from jobs.events import OPERATION, tell
from jobs.hints import DUE, hint
from jobs.models import Job, Operation
from jobs.selectors.operations import ALLOWED, is_about_letters, next_rows
from orgs.models import Project
from queues.models import Queue
from scheduler_project.lib.errors import Conflict, ValidationFailed
from scheduler_project.lib.ids import HIGHEST, first_id_at
from scheduler_project.lib.sql import database_now

MAX_IDS = 10_000
MAX_REASON_CHARS = 500
#: Of more jobs than that "some of them first" would be no care.
MAX_CANARY = 100
MAX_PACE = 10_000
#: What runs afterwards, so that it can fail again or be too much at once.
CAREFUL = (Operation.Action.RETRY, Operation.Action.REDRIVE)
#: Rows are counted so far before an operation begins.
MOST_ESTIMATED = 1_000
SAMPLE = 10
UNENDED = (Operation.State.PENDING, Operation.State.RUNNING)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an operation would be applied to now; ``count`` is the least if it is capped."""

    count: int
    is_capped: bool
    sample: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOperation:
    """A decision as it was asked for: a filter, or a list of ids.

    Attributes:
        filter: of queue_id, status, job_type, created_from and created_to (of dead letters: when they were moved).
        canary: so many jobs first, the rest once those have completed; 1 to MAX_CANARY.
        pace: so many jobs in each ``pace_per`` (second, minute, hour); 1 to MAX_PACE.
    """

    action: str
    filter: Mapping[str, Any]
    ids: Sequence[UUID] | None = None
    reason: str = ""
    canary: int | None = None
    pace: int | None = None
    pace_per: str = Operation.Per.MINUTE


def prepare(project: Project, new: NewOperation) -> tuple[Operation, Estimate]:
    """The operation, not stored, with its filter frozen: absolute times, and nothing that comes after.

    Raises:
        ValidationFailed: naming the field.
    """
    _check(new)
    now = database_now()
    queue_id = new.filter.get("queue_id")
    operation = Operation(
        project_id=project.pk,
        action=new.action,
        filter=_frozen(new),
        ids=None if new.ids is None else [str(id_) for id_ in sorted(set(new.ids))],
        until_id=_last_id(project.pk, queue_id, new),
        reason=new.reason,
        canary=new.canary,
        pace=new.pace,
        pace_per=new.pace_per,
        created_at=now,
    )
    found = next_rows(operation, MOST_ESTIMATED, now)
    estimate = Estimate(len(found.ids), found.cursor is not None, _sample(new.action, found.ids[:SAMPLE]))
    operation.estimate, operation.is_estimate_capped = estimate.count, estimate.is_capped
    return operation, estimate


def start(operation: Operation, *, by: UUID | None, api_key_id: UUID | None) -> Operation:
    """Store a prepared operation; the scheduler begins with it at once."""
    operation.created_by_id, operation.api_key_id = by, api_key_id
    operation.save(force_insert=True)
    tell(OPERATION, operation.project_id, operation.pk, "started")
    hint(DUE)
    return operation


def abort(operation_id: UUID) -> Operation:
    """Let an operation end after its running step; what it has done stays.

    Raises:
        Conflict: it has ended.
    """
    with transaction.atomic():
        operation = Operation.objects.select_for_update(no_key=True).get(pk=operation_id)
        if operation.state not in UNENDED:
            raise Conflict(f"The operation is {operation.state} already.")
        operation.state = Operation.State.ABORTED
        Operation.objects.filter(pk=operation_id).update(state=operation.state, ended_at=Now())
    tell(OPERATION, operation.project_id, operation.pk, "aborted")
    operation.refresh_from_db()
    return operation


def _check(new: NewOperation) -> None:
    _check_care(new)
    status = new.filter.get("status")
    if status is not None:
        allowed = ALLOWED.get(new.action)
        if allowed is None:
            raise ValidationFailed.of("filter.status", f"{new.action} is for open dead letters, which have no status")
        if status not in allowed:
            raise ValidationFailed.of("filter.status", f"{new.action} is for jobs that are {', '.join(allowed)}")


def _check_care(new: NewOperation) -> None:
    for name, value, most in (("canary", new.canary, MAX_CANARY), ("pace", new.pace, MAX_PACE)):
        if value is None:
            continue
        if new.action not in CAREFUL:
            raise ValidationFailed.of(name, f"is for {' and '.join(CAREFUL)}: {new.action} makes nothing run")
        if not 1 <= value <= most:
            raise ValidationFailed.of(name, f"must be a whole number from 1 to {most:,}")
    if new.pace_per not in Operation.Per.values:
        raise ValidationFailed.of("pace_per", f"must be one of {', '.join(Operation.Per.values)}")


def _frozen(new: NewOperation) -> dict[str, Any]:
    kept = {name: str(new.filter[name]) for name in ("queue_id", "status", "job_type") if new.filter.get(name)}
    created_from, created_to = new.filter.get("created_from"), new.filter.get("created_to")
    if is_about_letters(new.action):
        kept.update({"moved_from": created_from.isoformat()} if created_from else {})
        kept.update({"moved_to": created_to.isoformat()} if created_to else {})
    elif created_from:
        kept["from_id"] = str(UUID(int=max(0, first_id_at(created_from).int - 1)))
    return kept


def _last_id(project_id: UUID, queue_id: UUID | None, new: NewOperation) -> UUID:
    """The newest row there is, of those that the filter lets through."""
    if new.ids is not None or is_about_letters(new.action):
        return HIGHEST  # letters are bounded by the moment they were moved: their ids are older than they are
    queues = Queue.objects.filter(project_id=project_id).values_list("pk", flat=True)
    created_to = new.filter.get("created_to")
    below = HIGHEST if created_to is None else first_id_at(created_to)
    newest = Job.objects.page_of(
        queue_ids=[queue_id] if queue_id else list(queues),
        from_id=UUID(int=0), below_id=below, status=None, rows=1, limit=1, skip=0,
    )  # fmt: skip
    return newest[0] if newest else UUID(int=0)


def _sample(action: str, ids: Sequence[UUID]) -> list[dict[str, Any]]:
    if is_about_letters(action):
        letters = DeadLetter.objects.filter(pk__in=ids).order_by("id").values("id", "job_id", "job_type")
        return [dict(row) for row in letters]
    return [dict(row) for row in Job.objects.filter(pk__in=ids).order_by("id").values("id", "job_type", "status")]
