"""Dead letters that look alike, put together: same job type, same reason, same shape of the error."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import FloatField, QuerySet
from django.db.models.functions import Cast, Extract, Left

from dlq.models import DeadLetter
from scheduler_project.lib.web.text import shape_of

#: The newest open letters that are read to be grouped; those beyond are found in the list.
MOST_GROUPED = 5_000
_COLUMNS = ("id", "job_type", "failure_reason", "queue__name", "error", "moved")
#: Thousands of times are read and few are shown: a number costs a tenth of a time.
_SECONDS = Cast(Extract("moved_at", "epoch"), FloatField())


class Kind(NamedTuple):
    """What letters of one group have in common."""

    job_type: str
    reason: str
    shape: str

    @property
    def key(self) -> str:
        """A short name for addresses."""
        return hashlib.sha256("\x00".join(self).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Group:
    """Letters that look alike, the newest first; when the oldest and the newest were written."""

    kind: Kind
    sample: str
    ids: list[UUID]
    queues: Counter[str]
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups, the largest first; ``is_cut`` if there are more open letters than were read."""

    groups: list[Group]
    count: int
    is_cut: bool

    def of(self, key: str) -> Group | None:
        """The group of this key."""
        return next((group for group in self.groups if group.kind.key == key), None)


def open_letters(project_id: UUID) -> QuerySet[DeadLetter]:
    """Of a project those that wait for a decision, newest first."""
    return DeadLetter.objects.filter(project_id=project_id, resolved=False).order_by("-id")


def group(letters: QuerySet[DeadLetter]) -> Grouped:
    """Read at most MOST_GROUPED letters, without their payloads; one statement."""
    rows: list[tuple[Any, ...]] = list(
        letters.annotate(error=Left("last_error", 300), moved=_SECONDS).values_list(*_COLUMNS)[: MOST_GROUPED + 1]
    )
    found = _put_together(rows[:MOST_GROUPED])
    return Grouped(found, min(len(rows), MOST_GROUPED), len(rows) > MOST_GROUPED)


def _put_together(rows: Iterable[tuple[Any, ...]]) -> list[Group]:
    alike: defaultdict[tuple[str, str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        alike[row[1], row[2], shape_of(row[4])].append(row)
    groups = [_group(Kind(*key), some) for key, some in alike.items()]
    return sorted(groups, key=lambda one: (-len(one.ids), one.kind))


def _group(kind: Kind, rows: list[tuple[Any, ...]]) -> Group:
    ids, _, _, queues, errors, moved = zip(*rows, strict=True)
    first, last = min(moved), max(moved)
    return Group(
        kind, errors[0], list(ids), Counter(queues), *(datetime.fromtimestamp(at, UTC) for at in (first, last))
    )
