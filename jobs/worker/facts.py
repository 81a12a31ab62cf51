"""Facts of projects, read from the database by whichever handler asks first and kept for a few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jobs.handlers.facts import ProjectFacts
from jobs.selectors.project_facts import facts_of_project
from scheduler_project.lib.dbthreads import drop_connection, has_open_connection

#: How long a change in the database may go unseen.
KEPT_S = 5.0
MAX_PROJECTS = 1_000


class FactsCache:
    """By project. An error is not kept: the next one who asks tries again."""

    def __init__(
        self,
        read: Callable[[str], ProjectFacts] = facts_of_project,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._clock = read, clock
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, ProjectFacts]] = {}
        self._reading: dict[str, threading.Lock] = {}

    def of(self, project_id: str) -> ProjectFacts:
        """The facts of a project; of many who ask at once one reads, the others wait for it."""
        if (facts := self._fresh(project_id)) is not None:
            return facts
        with self._lock:
            reading = self._reading.setdefault(project_id, threading.Lock())
        with reading:
            if (facts := self._fresh(project_id)) is None:
                facts = self._load(project_id)
        return facts

    def _fresh(self, project_id: str) -> ProjectFacts | None:
        found = self._kept.get(project_id)
        return found[1] if found is not None and self._clock() - found[0] < KEPT_S else None

    def _load(self, project_id: str) -> ProjectFacts:
        asked_at, was_open = self._clock(), has_open_connection()
        try:
            facts = self._read(project_id)
        finally:
            if not was_open:  # threads that serve the event loop live long and need the database rarely
                drop_connection()
        with self._lock:
            self._kept.pop(project_id, None)
            self._kept[project_id] = (asked_at, facts)
            while len(self._kept) > MAX_PROJECTS:
                oldest = next(iter(self._kept))
                del self._kept[oldest]
                self._reading.pop(oldest, None)
        return facts
