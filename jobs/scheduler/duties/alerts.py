"""Alert rules are looked at, a few at a time. That nobody leads is for the workers to notice (worker/lookout.py)."""

from __future__ import annotations

import time
from uuid import UUID

from jobs.scheduler.duties.base import Duty
from jobs.services.alerting import FIRST, look

#: Other duties wait for a round of this one, so it is short; the rest follows after a breath.
ROUND_S, BREATH_S = 0.1, 0.2
#: A walk over all rules is followed by a rest of so many times its length.
REST, LONGEST_REST_S = 10, 60.0


def duty(every_s: float) -> Duty:
    """Go on with the walk over all rules, or begin the next one."""
    after: UUID | None = None
    walked_s = 0.0

    def run() -> float | None:
        nonlocal after, walked_s
        began = time.monotonic()
        walked_s = 0.0 if after is None else walked_s
        after = look(after or FIRST)
        while after is not None and time.monotonic() < began + ROUND_S:
            after = look(after)
        walked_s += time.monotonic() - began
        return BREATH_S if after is not None else min(LONGEST_REST_S, max(every_s, REST * walked_s))

    return Duty("alerts", every_s, run)
