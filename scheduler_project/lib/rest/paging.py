"""Limit-and-offset pages: bounded, and without a count of all there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from scheduler_project.lib.rest.fields import Digits, Input

T = TypeVar("T")

DEFAULT_LIMIT, MAX_LIMIT = 50, 200
#: Each row before the offset is read and thrown away; who needs more narrows the list by its filters.
MAX_OFFSET = 10_000


class PageQuery(Input):
    """The query parameters of every list."""

    limit = Digits(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    offset = Digits(min_value=0, max_value=MAX_OFFSET, default=0)


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that was asked for."""

    limit: int
    offset: int

    @classmethod
    def of(cls, query: Mapping[str, Any]) -> Window:
        """From the checked parameters of a PageQuery."""
        return cls(query["limit"], query["offset"])

    @property
    def rows(self) -> slice:
        """The rows to read: one more than are shown, to know whether there is a next page."""
        return slice(self.offset, self.offset + self.limit + 1)

    def page(self, rows: Sequence[T], show: Callable[[T], Mapping[str, Any]]) -> dict[str, Any]:
        """The body of a list's answer from the rows that were read."""
        has_next = len(rows) > self.limit
        return {
            "items": [show(row) for row in rows[: self.limit]],
            "limit": self.limit,
            "offset": self.offset,
            "next_offset": self.offset + self.limit if has_next else None,
        }
