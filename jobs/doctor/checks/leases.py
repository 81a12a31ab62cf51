"""Jobs whose worker has gone and that nobody has rescued."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from jobs.doctor.finding import Findings, problem
from jobs.models import Job
from scheduler_project.lib.sql import database_now

MOST = 1_000


def look() -> Findings:
    """Leases that ran out two sweeps ago and more."""
    patience = timedelta(seconds=2 * settings.SCHEDULER_LEASE_REAPER_INTERVAL_SECS + 10)
    stuck = Job.objects.in_flight().filter(lease_expires_at__lt=database_now() - patience)
    ids = [str(pk) for pk in stuck.order_by("lease_expires_at").values_list("pk", flat=True)[:MOST]]
    if ids:
        count = f"{len(ids)}" if len(ids) < MOST else f"at least {MOST}"
        yield problem(
            f"{count} jobs are held by leases that ran out more than {patience.seconds} s ago, such as {ids[0]}",
            "a scheduler that leads takes them back; its log says expired_leases_reaped or row_set_aside",
        )
