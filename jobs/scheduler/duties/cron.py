"""Schedules fire when they are due."""

from __future__ import annotations

from jobs.scheduler.duties.base import Duty
from jobs.services.firing import due_in_s, fire_due, recompute_after_upgrade
from scheduler_project.lib import logs

log = logs.get(__name__)

SHORTEST_S = 0.005


def duty(every_s: float) -> Duty:
    """Fire, then ask when the next schedule is due, to be there in time."""
    is_checked = False

    def run() -> float | None:
        nonlocal is_checked
        if not is_checked and (count := recompute_after_upgrade()):
            log.info("next_runs_recomputed", count=count)
        is_checked = True
        count = fire_due()
        due_s = due_in_s()
        if due_s is None or (due_s <= 0 and count == 0):
            return every_s
        return min(every_s, max(SHORTEST_S, due_s))

    return Duty("cron", every_s, run)
