"""Scheduled jobs become queued when their time has come."""

from __future__ import annotations

from jobs import metrics
from jobs.lifecycle.promote import due_ids, due_in_s, promote_due
from jobs.scheduler.duties.base import Careful, Duty

#: Between two looks: for a moment what was just set aside counts as what has just become due.
SHORTEST_S = 0.005


def duty(every_s: float) -> Duty:
    """Promote, then ask when the next job is due, to be there in time."""
    careful = Careful("promote", promote_due, due_ids)

    def run() -> float | None:
        count, has_more = careful.run()
        metrics.PROMOTED.inc(count)
        if has_more:
            return 0.0
        due_s = due_in_s()
        return every_s if due_s is None else min(every_s, max(SHORTEST_S, due_s))

    return Duty("promote", every_s, run)
