"""Endings that wait for their round trip: those that come close together travel together (group commit)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator

from jobs.decisions import Succeeded
from jobs.lease import Ending

GATHER_S = 0.003
GATHER_MOST = 250
#: Results of so many characters travel together, at most; a message to the server ends at 1 GB.
MOST_CHARS = 32 * 2**20


class Endings:
    """A line. Seats add to it at any moment; all else is the loop's."""

    def __init__(self) -> None:
        self._line: deque[Ending] = deque()
        self._first_at = 0.0

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[Ending]:
        return iter(list(self._line))

    def add(self, ending: Ending) -> bool:
        """Append one; is it worth to look whether they are to go?"""
        self._line.append(ending)
        count = len(self._line)
        if count == 1:
            self._first_at = time.monotonic()
        return count in (1, GATHER_MOST)

    def add_all(self, endings: Iterable[Ending]) -> None:
        """Append some that need not be waited for."""
        self._line.extend(endings)

    @property
    def are_many(self) -> bool:
        """Are there enough for a round trip?"""
        return len(self._line) >= GATHER_MOST

    def due_in_s(self, now: float) -> float:
        """When they are to go, whatever else; never, if there are none."""
        if not self._line:
            return float("inf")
        return 0.0 if self.are_many else max(0.0, self._first_at + GATHER_S - now)

    def take(self) -> list[Ending]:
        """Take them out, up to a size. One by one: seats append at any moment, a swap could lose one."""
        taken, size = [], 0
        while self._line and size < MOST_CHARS:
            ending = self._line.popleft()
            taken.append(ending)
            if isinstance(ending.verdict, Succeeded):
                size += len(ending.verdict.result_json or "")
        return taken

    def take_some(self, count: int) -> list[Ending]:
        """Take out the first ones."""
        return [self._line.popleft() for _ in range(count)]

    def put_back(self, endings: Iterable[Ending]) -> None:
        """They were not written: they are the first again."""
        self._line.extendleft(reversed(list(endings)))
        self._first_at = time.monotonic()
