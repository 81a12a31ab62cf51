"""What a peer's worker has handled, told when it is asked to end. Nothing but the standard library is needed here."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from types import FrameType


class Handled:
    """Counts jobs, and keeps when those with a number began.

    On SIGTERM the process writes what it knows as JSON and is gone: how a peer shuts down is not what is measured.
    """

    def __init__(self) -> None:
        self.count = 0
        self._first_at = 0.0
        self._cpu_s = 0.0
        self._began: dict[int, float] = {}

    def one(self, number: int = -1) -> None:
        """A handler has begun; with a number, somebody waits for exactly this one."""
        if not self.count:
            self._first_at, self._cpu_s = time.time(), time.process_time()
        self.count += 1
        if number >= 0:
            self._began[number] = time.time()

    def tell_at_the_end(self) -> None:
        """From now on SIGTERM ends the process."""
        signal.signal(signal.SIGTERM, self._tell)

    def _tell(self, _signal: int, _frame: FrameType | None) -> None:
        told = {
            "count": self.count,
            "first_at": self._first_at,
            "cpu_s": time.process_time() - self._cpu_s if self.count else 0.0,
            "began": self._began,
        }
        sys.stdout.write(json.dumps(told))
        sys.stdout.flush()
        os._exit(0)


def tell(**found: object) -> None:
    """Write what a program found."""
    sys.stdout.write(json.dumps(found))
