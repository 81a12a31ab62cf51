"""Open circuits are probed by one job, and closing ones let more and more through."""

from __future__ import annotations

from jobs.lifecycle.circuits import let_through, probe_in_s
from jobs.scheduler.duties.base import Duty

SHORTEST_S = 0.02


def duty(every_s: float) -> Duty:
    """Choose, then ask when the next open circuit is to be probed."""

    def run() -> float | None:
        let_through()
        probe_s = probe_in_s()
        # Overdue: there is no job to probe with. One that comes is found by the next regular look.
        return every_s if probe_s is None or probe_s <= 0 else min(every_s, max(SHORTEST_S, probe_s))

    return Duty("circuits", every_s, run)
