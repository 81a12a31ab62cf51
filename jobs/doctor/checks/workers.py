"""Do the workers answer, and are they of one release?"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from jobs.doctor.finding import Findings, warning
from jobs.models import Worker
from scheduler_project.lib.sql import database_now

SILENT = timedelta(seconds=60)


def look() -> Findings:
    """Those that fell silent and were not retired, and those of another release than this."""
    alive = Worker.objects.filter(status__in=[Worker.Status.ACTIVE, Worker.Status.DRAINING])
    for worker in alive.filter(last_seen_at__lt=database_now() - SILENT).order_by("hostname", "pid")[:20]:
        yield warning(
            f"worker {worker} was last seen at {worker.last_seen_at:%H:%M:%S} UTC and is not retired",
            "see whether its host lives; a scheduler that leads retires it",
        )
    releases = sorted(set(alive.filter(project=None).values_list("version", flat=True)) - {settings.VERSION})
    if releases:
        yield warning(
            f"workers of other releases run: {', '.join(releases)}; this is {settings.VERSION}", "end the deploy"
        )
