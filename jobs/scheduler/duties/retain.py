"""Ended jobs past their retention move to the archive, a little at a time."""

from __future__ import annotations

import time

from jobs import metrics
from jobs.scheduler.duties.base import Duty
from jobs.services.retention import Walk, drop_old_months, walks
from scheduler_project.lib import logs

log = logs.get(__name__)

#: Other duties wait for a round of this one, so it is short; the rest follows after a breath.
ROUND_S, BREATH_S = 0.25, 0.5


def duty(every_s: float) -> Duty:
    """Walk over all jobs once in ``every_s``, in rounds."""
    todo: list[Walk] = []

    def run() -> float | None:
        if not todo:
            todo.extend(walks())
            drop_old_months()
        end, moved = time.monotonic() + ROUND_S, 0
        while todo and time.monotonic() < end:
            has_more, count = todo[-1].step()
            moved += count
            if not has_more:
                todo.pop()
        if moved:
            metrics.ARCHIVED.inc(moved)
            log.info("jobs_archived", count=moved)
        return BREATH_S if todo else None

    return Duty("retain", every_s, run)
