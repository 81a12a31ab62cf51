"""Events that somebody subscribed to become the jobs that deliver them."""

from __future__ import annotations

from jobs.scheduler.duties.base import Careful, Duty
from jobs.services.outgoing import deliver, waiting_events

AT_ONCE = 100
BREATH_S = 0.05


def duty(every_s: float) -> Duty:
    """Deliver, and go on soon while there is more."""
    careful = Careful("outgoing", deliver, waiting_events, limit=AT_ONCE)

    def run() -> float | None:
        _, has_more = careful.run()
        return BREATH_S if has_more else None

    return Duty("outgoing", every_s, run)
