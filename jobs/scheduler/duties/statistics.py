"""The statistics are folded, and the queues counted, at a bounded share of the leader's time."""

from __future__ import annotations

import time

from jobs.scheduler.duties.base import Duty
from jobs.services.statistics import AT_ONCE, FIRST, fold, forget_old, keep_depths, look_at_queues

#: Other duties wait for a round of this one, so it is short; the rest follows after a breath.
ROUND_S, BREATH_S = 0.1, 0.1
#: A walk over all queues is followed by a rest of so many times its length: at most one part in eleven of the time.
REST = 10
LONGEST_REST_S = 15.0
FORGET_EVERY_S = 600.0


def duty(every_s: float) -> Duty:
    """Fold what was written; go on with the walk over the queues, or begin the next one."""
    after: str | None = None
    walked_s = next_walk_at = forget_at = 0.0

    def run() -> float | None:
        nonlocal after, walked_s, next_walk_at, forget_at
        began = time.monotonic()
        has_more = _fold_until(began + ROUND_S)
        if began >= forget_at:
            forget_at = began + FORGET_EVERY_S
            forget_old()
        walk_began = time.monotonic()
        if after is None and walk_began >= next_walk_at:
            after, walked_s = FIRST, 0.0
        while after is not None and time.monotonic() < walk_began + ROUND_S:
            after = look_at_queues(after)
            if after is None:
                keep_depths()
                walked_s += time.monotonic() - walk_began
                next_walk_at = time.monotonic() + min(LONGEST_REST_S, max(every_s, REST * walked_s))
        if after is not None:
            walked_s += time.monotonic() - walk_began
        return BREATH_S if has_more or after is not None else None

    return Duty("statistics", every_s, run)


def _fold_until(end: float) -> bool:
    """Fold for a while; is there more?"""
    while fold() == AT_ONCE:
        if time.monotonic() >= end:
            return True
    return False
