"""Workers that fell silent are retired; old heartbeats are forgotten."""

from __future__ import annotations

import time

from jobs.scheduler.duties.base import Duty
from jobs.services.workers import prune_heartbeats, retire_silent
from scheduler_project.lib import logs

log = logs.get(__name__)

KEEP_S = 24 * 3600.0
PRUNE_AT_ONCE = 5_000


def duty(every_s: float, silent_s: float) -> Duty:
    """Retire and prune.

    A worker counts as silent only if this leader has been at work all that time: after an outage of the database all
    workers look silent, and none is.
    """
    since = time.monotonic()

    def run() -> float | None:
        if time.monotonic() - since > silent_s and (lost := retire_silent(silent_s)):
            log.warning("silent_workers_retired", workers=lost, silent_s=silent_s)
        prune_heartbeats(KEEP_S, PRUNE_AT_ONCE)
        return None

    return Duty("workers", every_s, run)
