"""promote: scheduled -> queued when the time has come."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.events import jobs_changed
from jobs.hints import WORK, hint
from jobs.models import Job


def promote_due(*, limit: int, skip: Sequence[str] = (), only: Sequence[str] | None = None) -> int:
    """Queue up to ``limit`` jobs whose time has come and which wait for no other; return how many.

    Args:
        skip: ids set aside because they failed before.
        only: if given, just these ids.
    """
    rows = Job.claims.promote(limit=limit, skip=skip, only=only)
    for queue_id in {queue_id for queue_id, _ in rows}:
        hint(WORK, queue_id)
    jobs_changed(job_id for _, job_id in rows)
    return len(rows)


def due_ids(limit: int) -> list[str]:
    """The ids a promotion would take, to try them one by one."""
    due = Job.objects.due().order_by("run_at", "id").values_list("id", flat=True)[:limit]
    return [str(id_) for id_ in due]


#: What is overdue by less has just become due; what is overdue by more can not be promoted now.
JUST_S = 0.1


def due_in_s() -> float | None:
    """Seconds until the next scheduled job is due, negative if one has just become so, None if there is none.

    Jobs that were due before, and stay because they are set aside or locked, are not looked at.
    """
    seconds: float | None = Job.claims.due_next(JUST_S)[0][0]
    return seconds
