"""Attempts whose lease ran out end as lost; their jobs run again or are buried."""

from __future__ import annotations

from jobs import metrics
from jobs.lifecycle.reap import expired_ids, reap_expired
from jobs.scheduler.duties.base import Careful, Duty
from scheduler_project.lib import logs

log = logs.get(__name__)


def duty(every_s: float) -> Duty:
    """Reap all that is expired."""
    careful = Careful("reap", reap_expired, expired_ids, limit=200)

    def run() -> float | None:
        count, has_more = careful.run()
        if count:
            metrics.RESCUED.inc(count)
            log.warning("expired_leases_reaped", count=count)
        return 0.0 if has_more else None

    return Duty("reap", every_s, run)
