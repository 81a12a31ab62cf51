"""A clock that stands in for the module ``time``."""

from __future__ import annotations


class StandingClock:
    """Moves only when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        """Seconds, as ``time.monotonic``."""
        return self.now
