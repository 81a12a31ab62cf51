"""Upkeep of the tables that are partitioned by month."""

from __future__ import annotations

from jobs import sql
from scheduler_project.lib.sql import run

MONTHS_AHEAD = 2
#: Table and the time column that it is partitioned by.
PARTITIONED = {"job_logs": "ts", "jobs_archive": "completed_at"}


def ensure_months() -> None:
    """Make the partitions of this month and the next ones. What came before its month lies in the default one."""
    for parent, key in PARTITIONED.items():
        run(sql.ENSURE_MONTHS, {"parent": parent, "key": key, "months": MONTHS_AHEAD})
