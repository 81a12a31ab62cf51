"""Circuits that are open for long: their jobs wait, however many workers there are."""

from __future__ import annotations

from datetime import timedelta

from jobs.doctor.finding import Findings, warning
from jobs.models import CircuitBreaker
from scheduler_project.lib.sql import database_now

LONG = timedelta(hours=1)
MOST = 20


def look() -> Findings:
    """Those that have not been closed for an hour."""
    since = database_now() - LONG
    for breaker in CircuitBreaker.objects.filter(state="open", opened_at__lt=since).order_by("opened_at")[:MOST]:
        yield warning(
            f"the circuit of {breaker.name} is open since {breaker.opened_at:%Y-%m-%d %H:%M} UTC",
            "see whether the target answers; the circuit can be reset by hand",
        )
