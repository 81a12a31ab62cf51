"""Batches end when their jobs have, and their callbacks are submitted once."""

from __future__ import annotations

from jobs.scheduler.duties.base import Duty
from jobs.services.batches import fold_batches, has_unended_batches

#: While a batch runs it is looked at this often.
WATCH_S = 0.5


def duty(every_s: float) -> Duty:
    """Fold, more often while there is something to fold."""

    def run() -> float | None:
        fold_batches()
        return min(WATCH_S, every_s) if has_unended_batches() else None

    return Duty("batches", every_s, run)
