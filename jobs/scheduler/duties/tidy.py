"""What has served its time: answered claims of workers over HTTP, rate limits nobody uses, old alerts."""

from __future__ import annotations

from jobs.scheduler.duties.base import Duty
from jobs.services.alerting import forget_old
from jobs.services.remote.claiming import forget_claims
from orgs.token_bucket import forget_full_buckets

AT_ONCE = 2_000
BREATH_S = 1.0


def duty(every_s: float) -> Duty:
    """Delete what is due, a little at a time."""

    def run() -> float | None:
        counts = forget_claims(AT_ONCE), forget_full_buckets(AT_ONCE), forget_old(AT_ONCE)
        return BREATH_S if AT_ONCE in counts else None

    return Duty("tidy", every_s, run)
