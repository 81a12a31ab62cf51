"""The months' partitions are there before their months."""

from __future__ import annotations

from jobs.scheduler.duties.base import Duty
from jobs.services.partitions import ensure_months


def duty(every_s: float) -> Duty:
    """Make what is missing."""

    def run() -> float | None:
        ensure_months()
        return None

    return Duty("partitions", every_s, run)
