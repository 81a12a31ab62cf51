"""Retention: ended jobs move to the archive in small steps; months of logs and archive are dropped, never deleted."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings

from jobs import sql
from jobs.models import Job
from orgs.models import Project
from scheduler_project.lib.ids import first_id_at
from scheduler_project.lib.sql import database_now, run
from scheduler_project.lib.statements import plain_array

DAY_S = 86_400.0
STEP = 500
_START = UUID(int=0)


@dataclass(slots=True)
class Walk:
    """One pass over the jobs of the projects that keep them equally long."""

    project_ids: list[UUID] | None
    others: list[UUID]
    keep_s: float
    after: str = str(_START)

    def until(self) -> UUID:
        """No job with this id or a later one is old enough."""
        return first_id_at(database_now() - timedelta(seconds=self.keep_s))

    def step(self) -> tuple[bool, int]:
        """Look at the next jobs and move those past their retention; is there more, and how many moved."""
        [(walked, moved)] = run(
            sql.ARCHIVE,
            {
                "project_ids": None if self.project_ids is None else plain_array(self.project_ids),
                "others": plain_array(self.others),
                "keep_s": self.keep_s,
                "after": self.after,
                "below": str(self.until()),
                "limit": STEP,
            },
        )
        if walked is None:
            return False, moved
        self.after = walked
        return True, moved


def walks() -> list[Walk]:
    """A walk for each retention that a project has of its own, and one for all the others."""
    own: defaultdict[int, list[UUID]] = defaultdict(list)
    for id_, days in Project.objects.exclude(retention_days=None).values_list("id", "retention_days"):
        own[days or 0].append(id_)
    special = [id_ for ids in own.values() for id_ in ids]
    found = [Walk(ids, [], days * DAY_S) for days, ids in own.items()]
    return [*found, Walk(None, special, settings.RETENTION_DAYS * DAY_S)]


def step_of_job(
    job_id: UUID, token: UUID, older_than_days: int | None, after: str | None
) -> tuple[int, str | None, str, int] | None:
    """One step over the project that a running job belongs to.

    Args:
        token: the job's lease.
        older_than_days: keep jobs longer than the project's retention says; a smaller number changes nothing.
        after: id that the step before looked at last.

    Returns:
        How many moved, the id to go on after (None: nothing is left), the id to stop at, the days that jobs are kept;
        or None instead of all that if the job does not hold this lease.
    """
    row = Job.objects.filter(pk=job_id, lease_token=token).values_list("project_id", "project__retention_days").first()
    if row is None:
        return None
    days = max(row[1] or settings.RETENTION_DAYS, older_than_days or 0)
    walk = Walk([row[0]], [], days * DAY_S, after or str(_START))
    has_more, moved = walk.step()
    return moved, walk.after if has_more else None, str(walk.until()), days


def drop_old_months() -> None:
    """Drop the months of logs and archive that are past their retention."""
    run(sql.DROP_MONTHS, {"parent": "job_logs", "keep_days": settings.LOG_RETENTION_DAYS})
    run(sql.DROP_MONTHS, {"parent": "jobs_archive", "keep_days": settings.ARCHIVE_RETENTION_DAYS})


def run_retention() -> int:
    """Everything once, to the end; how many jobs moved to the archive."""
    total = 0
    for walk in walks():
        has_more = True
        while has_more:
            has_more, moved = walk.step()
            total += moved
    drop_old_months()
    return total
