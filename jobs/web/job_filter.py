"""Which jobs a page is about: its address says it, and the search box says the same in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict

from jobs.selectors.job_lists import JobFilter
from jobs.selectors.job_search import WINDOWS, Search, as_id_prefix, parse, spell
from jobs.states import JobStatus
from scheduler_project.lib.errors import ValidationFailed
from scheduler_project.lib.web.paging import id_or_none
from scheduler_project.lib.web.text import shape_of

_MOST_NAMED, _MOST_ALIKE = 10, 100


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the address asks for; what it can not mean is left out."""

    status: str
    queue_id: UUID | None
    job_type: str
    window: str
    id_prefix: str = ""
    error: str = ""

    @classmethod
    def of(cls, given: QueryDict) -> Chosen:
        """Read it."""
        status, window = given.get("status", ""), given.get("window", "24h")
        return cls(
            status if status in JobStatus.values else "",
            id_or_none(given.get("queue", "")),
            _text(given, "type"),
            window if window in WINDOWS else "24h",
            as_id_prefix(given.get("id", "")) or "",
            _text(given, "error"),
        )

    @classmethod
    def searched(cls, text: str, names: Mapping[UUID, str]) -> Chosen:
        """What was typed into the search box.

        Raises:
            ValidationFailed: it can not be meant, or there is no such queue.
        """
        found = parse(text)
        queue_id = next((id_ for id_, name in names.items() if name == found.queue), None)
        if found.queue and queue_id is None:
            known = ", ".join(sorted(names.values())[:_MOST_NAMED]) or "none yet"
            more = " and more" if len(names) > _MOST_NAMED else ""
            raise ValidationFailed.of("q", f'queue: there is no "{found.queue}" here. There are: {known}{more}')
        return cls(found.status, queue_id, found.type, found.window or "24h", found.id, found.error)

    @property
    def is_searched(self) -> bool:
        """Does it ask for what operations can not be told?"""
        return bool(self.id_prefix or self.error)

    def since(self, now: datetime) -> datetime | None:
        """The start of the window."""
        length_s = WINDOWS[self.window]
        return None if length_s is None else now - timedelta(seconds=length_s)

    def words(self, names: Mapping[UUID, str]) -> str:
        """The same as it can be typed."""
        queue = names.get(self.queue_id, "") if self.queue_id else ""
        window = "" if self.window == ("all" if self.id_prefix else "24h") else self.window
        return spell(Search(queue, self.job_type, self.status, self.id_prefix, self.error, window))

    def address(self, **other: Any) -> str:
        """The query string of a page about it."""
        own = {
            "status": self.status, "queue": self.queue_id, "type": self.job_type, "window": self.window,
            "id": self.id_prefix, "error": self.error, **other,
        }  # fmt: skip
        return urlencode({name: str(value) for name, value in own.items() if value})

    def filter_in(self, queue_ids: Sequence[UUID], project_id: UUID, now: datetime) -> JobFilter | None:
        """The filter over queues of the project; None if no index would answer: a type is looked for in one queue."""
        mine = list(queue_ids) if self.queue_id is None else [id_ for id_ in queue_ids if id_ == self.queue_id]
        if self.job_type and not self.error and len(mine) > 1:
            return None
        return JobFilter(
            queue_ids=mine,
            project_id=project_id,
            status=self.status or None,
            job_type=self.job_type or None,
            created_from=self.since(now),
            id_prefix=self.id_prefix,
            error=self.error,
        )


def _text(given: QueryDict, name: str) -> str:
    return given.get(name, "").replace("\x00", "").replace('"', "").strip()[:200]


def alike(error: str) -> str:
    """The longest part of an error that is equal in errors of the same cause: what the list finds the others by."""
    return max(re.split(r"[#…'\"\n]+", shape_of(error)), key=len).strip()[:_MOST_ALIKE]
