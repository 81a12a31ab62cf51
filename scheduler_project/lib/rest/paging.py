"""Pages of lists: by limit and offset, or by a cursor that does not shift while rows arrive. Nothing is counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.core import signing
from django.db.models import Model, Q, QuerySet
from rest_framework.exceptions import ValidationError

from scheduler_project.lib.rest.fields import Digits, Id, Input, Text

T = TypeVar("T")
M = TypeVar("M", bound=Model)

DEFAULT_LIMIT, MAX_LIMIT = 50, 200
#: Each row before the offset is read and thrown away; who needs more follows the cursor.
MAX_OFFSET = 10_000
MAX_CURSOR_CHARS = 1_000
_SIGNER = signing.Signer(salt="punctual.cursor")
_READ: Mapping[str, Callable[[str], Any]] = {"uuid": UUID, "time": datetime.fromisoformat, "int": int, "text": str}


class Key(NamedTuple):
    """A column that a list is ordered by; the last of a list's keys is unique."""

    column: str
    kind: str = "uuid"
    is_descending: bool = True


#: Ids grow with time, so this is newest first.
NEWEST: tuple[Key, ...] = (Key("id"),)


class CursorField(Text):
    """What an answer's ``next_cursor`` said."""

    json_schema: Mapping[str, Any] = {"type": "string", "maxLength": MAX_CURSOR_CHARS, "pattern": "^[A-Za-z0-9_:.-]+$"}


class PageQuery(Input):
    """The query parameters of every list."""

    limit = Digits(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    offset = Digits(min_value=0, max_value=MAX_OFFSET, default=0)
    cursor = CursorField(max_length=MAX_CURSOR_CHARS, default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A cursor is a place already."""
        if attrs["cursor"] is not None and attrs["offset"]:
            raise ValidationError({"cursor": ["give either cursor or offset"]})
        return attrs


class OfProjectQuery(PageQuery):
    """The query parameters of a list that can be narrowed to one project."""

    project_id = Id(required=False)


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that was asked for.

    Attributes:
        after: the keys of the row before this page; None at the list's head. A row that arrives at the head is never
            behind a row that was shown, so pages that go on from here neither shift nor repeat.
    """

    limit: int
    offset: int
    of_list: str = ""
    order: tuple[Key, ...] = NEWEST
    after: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, query: Mapping[str, Any], path: str, order: tuple[Key, ...] = NEWEST) -> Window:
        """From the checked parameters of a PageQuery. ValidationError for a cursor that is not of this very list."""
        of_list = _fingerprint(query, path)
        cursor = query["cursor"]
        after = None if cursor is None else _opened(cursor, of_list, order)
        return cls(query["limit"], query["offset"], of_list, order, after)

    @property
    def rows(self) -> slice:
        """The rows to read: one more than are shown, to know whether there is a next page."""
        return slice(self.offset, self.offset + self.limit + 1)

    def read(self, queryset: QuerySet[M]) -> list[M]:
        """The rows of this page, and one more if there is a next."""
        ordered = queryset.order_by(*(f"-{key.column}" if key.is_descending else key.column for key in self.order))
        if self.after is not None:
            ordered = ordered.filter(self._behind())
        return list(ordered[self.rows])

    def page(
        self, rows: Sequence[T], show: Callable[[T], Mapping[str, Any]], *, resume: object = None
    ) -> dict[str, Any]:
        """The body of a list's answer from the rows that were read.

        Args:
            resume: the first key to go on from, for a list that stopped looking before the page was full.
        """
        has_next = len(rows) > self.limit
        shown = rows[: self.limit]
        cursor = self._sealed(shown[-1]) if has_next else None
        if not has_next and resume is not None:
            cursor = _SIGNER.sign_object([self.of_list, str(resume)])
        next_offset = self.offset + self.limit
        return {
            "items": [show(row) for row in shown],
            "limit": self.limit,
            "offset": self.offset,
            "next_offset": next_offset if has_next and self.after is None and next_offset <= MAX_OFFSET else None,
            "next_cursor": cursor,
        }

    def _behind(self) -> Q:
        """(a, b) > (x, y), with a bound on the first key alone that an index can use."""
        found = Q()
        assert self.after is not None  # noqa: S101 - the caller looked
        for place, (key, value) in enumerate(zip(self.order, self.after, strict=True)):
            same = {k.column: v for k, v in zip(self.order[:place], self.after[:place], strict=True)}
            found |= Q(**same, **{f"{key.column}__{'lt' if key.is_descending else 'gt'}": value})
        first = self.order[0]
        return Q(**{f"{first.column}__{'lte' if first.is_descending else 'gte'}": self.after[0]}) & found

    def _sealed(self, row: object) -> str:
        values = [getattr(row, key.column) for key in self.order]
        keys = [value.isoformat() if isinstance(value, datetime) else str(value) for value in values]
        return _SIGNER.sign_object([self.of_list, *keys])


def _fingerprint(query: Mapping[str, Any], path: str) -> str:
    """Stands for a list and its filters."""
    filters = {name: str(value) for name, value in query.items() if name not in ("limit", "offset", "cursor")}
    text = json.dumps([path, filters], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _opened(cursor: str, of_list: str, order: tuple[Key, ...]) -> tuple[Any, ...]:
    try:
        found_list, *keys = _SIGNER.unsign_object(cursor)
        values = tuple(_READ[key.kind](text) for key, text in zip(order, keys, strict=True))
    except (signing.BadSignature, ValueError, TypeError):
        raise ValidationError({"cursor": ["is not a cursor of this list"]}) from None
    if found_list != of_list:
        raise ValidationError({"cursor": ["belongs to a list with other filters"]})
    return values
