"""Alert rules are looked at, a few at a time. That nobody leads is for the workers to notice (worker/lookout.py)."""

from __future__ import annotations

import time
from uuid import UUID

from jobs.scheduler.duties.base import Duty
from jobs.services.alerting import FIRST, look

#: Other duties wait for a round of this one, so it is short; the rest follows after a breath.
ROUND_S, BREATH_S = 0.1, 0.1


def duty(every_s: float) -> Duty:
    """Go on with the walk over all rules, or begin the next one."""
    after: UUID | None = None

    def run() -> float | None:
        nonlocal after
        end = time.monotonic() + ROUND_S
        after = look(after or FIRST)
        while after is not None and time.monotonic() < end:
            after = look(after)
        return BREATH_S if after is not None else None

    return Duty("alerts", every_s, run)
