"""Pages of lists by a column that is unique in the list: a name, a time. No OFFSET, no total."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from scheduler_project.lib.web.paging import Page, size_of

M = TypeVar("M", bound=Model)


def page_by_column(request: HttpRequest, rows: QuerySet[M, Any], column: str, read: Callable[[str], Any]) -> Page[M]:
    """The rows after the request's ``after``. A cursor that can not be read is ignored.

    Args:
        column: its name; with a leading minus the list runs from the largest down.
        read: a cursor's text as the column's value, ``text_or_none`` or ``time_or_none``.
    """
    size, name = size_of(request), column.lstrip("-")
    after = read(request.GET.get("after", ""))
    if after is not None:
        rows = rows.filter(**{f"{name}__{'lt' if column.startswith('-') else 'gt'}": after})
    found = list(rows.order_by(column)[: size + 1])
    query = request.GET.copy()
    query.pop("after", None)
    first = query.urlencode() if after is not None else None
    if len(found) <= size:
        return Page(found, None, first)
    last = getattr(found[size - 1], name)
    query["after"] = last.isoformat() if isinstance(last, datetime) else str(last)
    return Page(found[:size], query.urlencode(), first)


def text_or_none(text: str) -> str | None:
    """A cursor that is a text."""
    return text[:500] if text and "\x00" not in text else None


def time_or_none(text: str) -> datetime | None:
    """A cursor that is a time with its offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None or not 1970 <= moment.year < 9999 else moment
