"""Waiting jobs behind a deadline of theirs are cancelled."""

from __future__ import annotations

from jobs.lifecycle.expire import expire_late, late_ids
from jobs.scheduler.duties.base import Careful, Duty
from scheduler_project.lib import logs

log = logs.get(__name__)


def duty(every_s: float) -> Duty:
    """Cancel all that is too late."""
    careful = Careful("expire", expire_late, late_ids)

    def run() -> float | None:
        count, has_more = careful.run()
        if count:
            log.info("late_jobs_cancelled", count=count)
        return 0.0 if has_more else None

    return Duty("expire", every_s, run)
