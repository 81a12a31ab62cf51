"""How fast jobs end here, and how many to claim ahead so that seats need not wait for the next round trip."""

from __future__ import annotations

import time
from collections.abc import Sequence

from jobs.lease import Ending

#: Jobs are claimed ahead for this much time of work. Longer would keep them from idle workers elsewhere.
AHEAD_S = 0.06
MOST = 500
#: Only short jobs are worth claiming ahead; a job behind a long one would wait.
SHORT_MS = 25.0
WEIGHT = 0.3


class Rates:
    """Moving averages of this worker's endings."""

    def __init__(self) -> None:
        self._per_s = 0.0
        self._mean_ms = SHORT_MS
        self._at = time.monotonic()

    def note(self, endings: Sequence[Ending]) -> None:
        """Take the endings since the last call into account."""
        now = time.monotonic()
        elapsed_s, self._at = max(now - self._at, 1e-4), now
        weight = WEIGHT if elapsed_s < 1 else 1.0  # after a pause the past says nothing
        self._per_s += weight * (len(endings) / elapsed_s - self._per_s)
        ran = [ending.ran_ms for ending in endings if ending.ran_ms is not None]
        if ran:
            self._mean_ms += WEIGHT * (sum(ran) / len(ran) - self._mean_ms)

    def prefetch(self) -> int:
        """How many jobs to claim beyond the free seats."""
        return min(MOST, int(self._per_s * AHEAD_S)) if self._mean_ms < SHORT_MS else 0
