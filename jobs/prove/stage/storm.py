"""A storm: one of several workers is killed again and again, and another takes its place."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator

from jobs.prove.stage.stage import Stage

#: Without end, unless said otherwise.
MOST = 1_000_000
_HAS_WORKED = "select exists (select from prove_effects where pid = %s and kind = 'end')"


class Storm(threading.Thread):
    """Kills one of ``size`` workers every ``every_s`` seconds by SIGKILL."""

    def __init__(self, stage: Stage, size: int, seats: int, every_s: float, most: int) -> None:
        super().__init__(daemon=True)
        self._stage, self._seats, self._every_s, self._most = stage, seats, every_s, most
        self._workers = [stage.worker(seats) for _ in range(size)]
        self._over = threading.Event()
        self._lot = random.Random(11)  # noqa: S311 - whom it meets
        self.kills = 0

    def run(self) -> None:
        """Kill until it is calm, or enough; only who has done something, or on a slow machine nobody ever would."""
        while self.kills < self._most and not self._over.wait(self._every_s):
            at_work = [index for index, one in enumerate(self._workers) if self._stage.value(_HAS_WORKED, one.pid)]
            if at_work:
                index = self._lot.choice(at_work)
                self._workers[index].kill()
                self._workers[index] = self._stage.worker(self._seats)
                self.kills += 1

    def calm(self) -> None:
        """No more kills."""
        self._over.set()
        self.join()


@contextlib.contextmanager
def storm(stage: Stage, size: int, *, seats: int = 4, every_s: float = 1.0, most: int = MOST) -> Iterator[Storm]:
    """Workers in a storm, which begins when they are at work; at the end it is calm, and they live on."""
    found = Storm(stage, size, seats, every_s, most)
    stage.until_ready(size)
    found.start()
    try:
        yield found
    finally:
        found.calm()
