"""Reads the jobs of a request that carries many: each is checked on its own, their queues are found together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from rest_framework.exceptions import ValidationError

from jobs.api.parents import Wanted
from jobs.api.serializers import BulkItemInput
from jobs.lifecycle.submit import Submitted
from jobs.new_job import NewJob, Parent
from jobs.services.bulk import Item, Outcome, Waits
from orgs.access import Actor
from orgs.models import Role
from queues.models import Queue
from queues.selectors import find_queues
from scheduler_project.lib.errors import DomainError, ValidationFailed
from scheduler_project.lib.rest.errors import field_errors, status_of


def read_items(actor: Actor, given: Sequence[Any]) -> list[Item | DomainError]:
    """The jobs as items, or what is wrong with each."""
    read = [_read(raw) for raw in given]
    fields = [one for one in read if isinstance(one, dict)]
    queues = find_queues(
        actor,
        ids={one["queue_id"] for one in fields if "queue_id" in one},
        paths={one["queue"] for one in fields if "queue" in one},
        needs=Role.MEMBER,
    )
    return [one if isinstance(one, DomainError) else _item(one, queues) for one in read]


def shown_outcome(index: int, outcome: Outcome) -> dict[str, Any]:
    """What became of one job of a request."""
    if isinstance(outcome, Submitted):
        shown = {"id": str(outcome.id), "job_status": outcome.status.value, "run_at": outcome.run_at}
        return {"index": index, "status": 201 if outcome.is_new else 200, **shown, "is_new": outcome.is_new}
    details = [{"field": detail.field, "message": detail.message} for detail in outcome.details]
    error = {"error": outcome.code, "message": outcome.message, "details": details}
    return {"index": index, "status": status_of(outcome), **error}


def _read(raw: Any) -> dict[str, Any] | DomainError:
    serializer = BulkItemInput(data=raw)
    try:
        serializer.is_valid(raise_exception=True)
    except ValidationError as error:
        found = field_errors(error)
        return ValidationFailed("; ".join(f"{e.field}: {e.message}" for e in found[:3]), found)
    fields: dict[str, Any] = serializer.validated_data
    return fields


def _item(fields: dict[str, Any], queues: Mapping[UUID | str, Queue | DomainError]) -> Item | DomainError:
    queue = queues[fields.pop("queue_id", None) or fields.pop("queue", "")]
    if isinstance(queue, DomainError):
        return queue
    fields.pop("queue", None)
    ref, wanted = fields.pop("ref"), fields.pop("depends_on")
    return Item(queue, NewJob(**fields), ref, [_waits(parent) for parent in wanted])


def _waits(wanted: Wanted) -> Waits:
    parent = None if wanted.job_id is None else Parent(wanted.job_id, wanted.on_failure)
    return Waits(wanted.ref, parent, wanted.on_failure)
