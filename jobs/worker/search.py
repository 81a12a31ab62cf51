"""Where work is looked for, and when: after a hint, a little later again, and at every poll."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence

from jobs.worker.config import WorkerConfig
from jobs.worker.roster import Roster
from scheduler_project.lib.sql import Row

#: After a hint, look again at these moments: the sender keeps quiet for a while after each one (jobs.hints).
LOOK_AGAIN_S = (0.005, 0.015, 0.03, 0.06)


class Search:
    """Keeps the roster true. Hints come from any thread, all else is the loop's."""

    def __init__(self, config: WorkerConfig, roster: Roster) -> None:
        self._config, self._roster = config, roster
        self._hints: deque[str] = deque()
        self._look_at: list[float] = []
        self._next_poll = 0.0

    def hint(self, queue_id: str) -> None:
        """A queue may have work; an empty id means: any may."""
        self._hints.append(queue_id)

    def is_due(self, now: float) -> bool:
        """Is it time to look?"""
        return bool(self._hints) or now >= self.next_at

    @property
    def next_at(self) -> float:
        """When it is time without a hint."""
        return min(self._next_poll, self._look_at[0]) if self._look_at else self._next_poll

    def poll_by(self, at: float) -> None:
        """Ask no later than then."""
        self._next_poll = min(self._next_poll, at)

    def look(self, ask: Callable[[Sequence[str]], list[Row]]) -> bool:
        """Take the hints into account, and ask the database if it is time to; did it have to be asked?

        Args:
            ask: for the queues that have work; those given are known to have some.
        """
        now = time.monotonic()
        must_ask = now >= self._next_poll
        while self._look_at and self._look_at[0] <= now:
            self._look_at.pop(0)
            must_ask = must_ask or not self._roster
        while self._hints:
            queue_id = self._hints.popleft()
            if queue_id and self._config.queue_ids is not None and queue_id not in self._config.queue_ids:
                continue
            self._look_at = [now + s for s in LOOK_AGAIN_S]
            must_ask = must_ask or not queue_id or not self._roster.touch(queue_id)
        if must_ask:
            self._next_poll = now + self._config.poll_s * random.uniform(0.8, 1.2)  # noqa: S311 - spreads polls only
            self._roster.refresh(ask(self._roster.full()))
        return must_ask
