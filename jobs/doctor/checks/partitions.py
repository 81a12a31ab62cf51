"""Are the partitions of this month and the next there?"""

from __future__ import annotations

from datetime import datetime, timedelta

from jobs.doctor import catalog
from jobs.doctor.finding import Findings, problem, warning
from jobs.services.partitions import PARTITIONED
from scheduler_project.lib.sql import database_now


def look() -> Findings:
    """Rows without a partition go to the default one, where retention can not drop them by the month."""
    now = database_now()
    this, following = _name(now), _name(now.replace(day=1) + timedelta(days=32))
    for parent in PARTITIONED:
        there = catalog.partitions_of(parent)
        do = "let a scheduler run: it makes them; if one does, its log says partition"
        if f"{parent}_{this}" not in there:
            yield problem(f"{parent} has no partition for this month", do)
        elif f"{parent}_{following}" not in there:
            yield warning(f"{parent} has no partition for the next month", do)
        if f"{parent}_default" not in there:
            yield problem(
                f"{parent} has no default partition: rows of other months are refused", "run manage.py migrate"
            )


def _name(at: datetime) -> str:
    return f"{at:%Y_%m}"
