"""What a duty is: work that the leader does again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from django.db import DatabaseError

from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import session

log = logs.get(__name__)

#: A row that could not be handled is left alone for this long.
SET_ASIDE_S = 60.0
ROUND_S = 0.25


@dataclass(slots=True)
class Duty:
    """One duty. ``run`` does one round and says in how many seconds it wants the next, None for ``every_s``.

    A duty must be safe to run twice at once: the lock that makes one leader is an economy, not a guard.
    """

    name: str
    every_s: float
    run: Callable[[], float | None]


class Batch(Protocol):
    """A lifecycle function that handles up to ``limit`` rows and says how many it did."""

    def __call__(self, *, limit: int, skip: Sequence[str] = (), only: Sequence[str] | None = None) -> int:
        """Handle rows."""


@dataclass(slots=True)
class Careful:
    """Runs a batch; if the database refuses it as a whole, row by row, setting aside the rows it refuses alone."""

    name: str
    batch: Batch
    ids: Callable[[int], list[str]]
    limit: int = 500
    _aside: dict[str, float] = field(default_factory=dict)

    def run(self) -> tuple[int, bool]:
        """Handle rows for at most ROUND_S, since other duties wait; how many were handled, and are there more?"""
        total, end = 0, time.monotonic() + ROUND_S
        while True:
            count = self._round()
            total += count
            if count < self.limit:
                return total, False
            if time.monotonic() >= end:
                return total, True

    def _round(self) -> int:
        now = time.monotonic()
        self._aside = {id_: until for id_, until in self._aside.items() if until > now}
        try:
            return self.batch(limit=self.limit, skip=list(self._aside))
        except DatabaseError as error:
            if session() is None:
                raise  # not a bad row: the database is away
            log.warning("batch_refused", duty=self.name, error=str(error).splitlines()[0])
        # Those set aside still stand at the head of the list: look past them.
        found = self.ids(self.limit + len(self._aside))
        return sum(self._alone(id_) for id_ in found if id_ not in self._aside)

    def _alone(self, id_: str) -> int:
        try:
            return self.batch(limit=1, only=[id_])
        except DatabaseError as error:
            if session() is None:
                raise
            self._aside[id_] = time.monotonic() + SET_ASIDE_S
            log.error("row_set_aside", duty=self.name, job_id=id_, error=str(error).splitlines()[0], for_s=SET_ASIDE_S)
            return 0
