"""Is the time-zone data there, recent, and the same that the schedules were computed with?"""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jobs.doctor.finding import Findings, problem, warning
from jobs.models import ScheduledJob
from scheduler_project.lib.sql import database_now
from scheduler_project.lib.tzdata import tzdata_version


def look() -> Findings:
    """The package, its age, stored times, unknown zones."""
    version = tzdata_version()
    if not version:
        yield problem("the package tzdata is not installed", "install the locked requirements")
        return
    year = re.match(r"\d{4}", version)
    if year and int(year[0]) < database_now().year - 1:
        yield warning(f"the time-zone data is of {year[0]}: rules have changed since", "upgrade the package tzdata")
    active = ScheduledJob.objects.filter(is_active=True, next_run_at__isnull=False)
    others = active.exclude(tzdata_version=version)
    if count := others.count():
        used = ", ".join(sorted(set(others.values_list("tzdata_version", flat=True)[:1_000])))
        yield warning(
            f"{count} schedules were computed with time-zone data {used or 'unknown'}, this process has {version}",
            "run the same release everywhere; a scheduler that leads computes them anew when it starts",
        )
    for zone in sorted(set(active.values_list("timezone", flat=True).distinct())):
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError):
            yield problem(f"schedules name the zone {zone}, which the data does not know", "give them another zone")
