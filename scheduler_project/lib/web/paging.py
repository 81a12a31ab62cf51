"""Pages of lists by key: no OFFSET, no total. The cursor is the id of the last row that was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpRequest

M = TypeVar("M", bound=Model)
SIZES = (50, 100, 200)


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """Some rows; the query strings of the next page and the first, None where there is none."""

    rows: Sequence[M]
    next_query: str | None
    first_query: str | None


def page_by_id(request: HttpRequest, newest_first: QuerySet[M, Any]) -> Page[M]:
    """The rows after the request's ``after``, of a list ordered by ``-id``. A cursor that is none is ignored."""
    size = size_of(request)
    after = id_or_none(request.GET.get("after", ""))
    queryset = newest_first.filter(pk__lt=after) if after else newest_first
    rows = list(queryset[: size + 1])
    query = request.GET.copy()
    query.pop("after", None)
    first = query.urlencode() if after else None
    if len(rows) <= size:
        return Page(rows, None, first)
    query["after"] = str(rows[size - 1].pk)
    return Page(rows[:size], query.urlencode(), first)


def size_of(request: HttpRequest) -> int:
    """How many rows are wanted: 50, 100 or 200."""
    given = request.GET.get("size", "")
    return int(given) if given in map(str, SIZES) else SIZES[0]


def id_or_none(text: str) -> UUID | None:
    """An id, if it is one."""
    try:
        return UUID(text)
    except ValueError:
        return None
