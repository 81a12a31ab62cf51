"""The audit log: who did what, on what, and what it changed; written in the transaction that does it.

Doors and services say what they do with ``deed``. Submitting a single job is no entry: the job's row is its record,
and a second row for each would double the cost of the busiest call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model
from structlog.contextvars import get_contextvars

from orgs.access import Actor, Machine
from orgs.models import AuditEntry, Organization, Project

Values = Mapping[str, Any]

#: Never in the log, whatever table they stand in.
_HIDDEN = frozenset({"password", "key_hash", "api_key_hash", "sealed", "lease_token", "last_used_at", "updated_at"})
#: What may hold anything a customer put there: only whether it changed can be seen.
_DIGESTED = frozenset(
    {"payload", "payload_template", "payload_snapshot", "result", "on_success", "on_end", "on_failure", "ids"}
)
_MAX_TEXT_CHARS = 500


@dataclass(frozen=True, slots=True)
class Place:
    """Whose log it is."""

    organization_id: UUID
    project_id: UUID | None = None


class Deed:
    """Something that is being done. ``on`` names its object once there is one; ``says`` adds what no column tells."""

    def __init__(self, row: Model | None, *, is_end: bool) -> None:
        self.row = row
        self.before = None if row is None else snapshot(row)
        self._is_end = is_end
        self._more: dict[str, Any] = {}

    def on(self, row: Model) -> None:
        """The row as it is now: a new one, or another copy of the one that was changed."""
        self.row = row

    def says(self, **more: Any) -> None:
        """Adds to what is kept as "after"."""
        self._more.update({name: _plain(name, value) for name, value in more.items()})

    def changes(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Before and after; of a change only the fields that differ."""
        if self.row is None or self._is_end:
            return self.before, dict(self._more) or None
        after = snapshot(self.row)
        before = self.before
        if before is not None:
            changed = {name for name in after if before.get(name) != after[name]}
            before = {name: value for name, value in before.items() if name in changed}
            after = {name: value for name, value in after.items() if name in changed}
        return before, {**after, **self._more}


@contextmanager
def deed(actor: Actor, action: str, row: Model | None = None, *, is_end: bool = False) -> Iterator[Deed]:
    """A transaction in which an actor does something to a row; the entry is its last statement.

    Args:
        action: object and verb, such as ``queue.pause``.
        row: as it was before; None for what does not exist yet, which ``on`` names then.
        is_end: the row is gone or hidden afterwards.
    """
    with transaction.atomic():
        doing = Deed(row, is_end=is_end)
        yield doing
        if doing.row is None:
            raise TypeError(f"{action}: on what?")
        before, after = doing.changes()
        kind = str(doing.row._meta.verbose_name).replace(" ", "_")
        record(actor, action, place_of(doing.row), target=(kind, doing.row.pk), before=before, after=after)


def record(
    actor: Actor,
    action: str,
    place: Place,
    *,
    target: tuple[str, object],
    before: Values | None = None,
    after: Values | None = None,
) -> None:
    """Write one entry, in the caller's transaction."""
    AuditEntry.objects.create(
        organization_id=place.organization_id,
        project_id=place.project_id,
        user_id=None if isinstance(actor, Machine) else actor.user_id,
        api_key_id=actor.key_id if isinstance(actor, Machine) else None,
        action=action,
        target_type=target[0],
        target_id=str(target[1]),
        before=before,
        after=after,
        request_id=str(get_contextvars().get("request_id", "")),
    )


def place_of(row: Model) -> Place:
    """The organization and, if it is inside one, the project that a row belongs to."""
    if isinstance(row, Organization):
        return Place(row.pk)
    project_id: UUID | None = row.pk if isinstance(row, Project) else getattr(row, "project_id", None)
    if project_id is None:
        return Place(row.organization_id)  # type: ignore[attr-defined] # members have one
    return Place(Project.objects.values_list("organization_id", flat=True).get(pk=project_id), project_id)


def snapshot(row: Model) -> dict[str, Any]:
    """The columns of a row that were read, fit for JSON and without secrets."""
    loaded = row.__dict__
    names = [field.attname for field in row._meta.concrete_fields if field.attname in loaded]
    return {name: _plain(name, loaded[name]) for name in names if name not in _HIDDEN}


def _plain(name: str, value: Any) -> Any:
    if name in _DIGESTED and value is not None:
        text = json.dumps(value, sort_keys=True, default=str)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return value[:_MAX_TEXT_CHARS]
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain("", inner) for inner in value]
    return str(value)
