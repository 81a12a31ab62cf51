"""expire: waiting jobs that may not begin any more are cancelled, and say why."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from jobs.decisions import DEADLINE_PASSED, START_DEADLINE_PASSED
from jobs.lifecycle.cancel import cancel_jobs
from jobs.models import Job
from jobs.states import WAITING
from scheduler_project.lib.sql import past_deadlocks


def expire_late(*, limit: int, skip: Sequence[str] = (), only: Sequence[str] | None = None) -> int:
    """Cancel up to ``limit`` waiting jobs whose start deadline or deadline has passed; return how many.

    Args:
        skip: ids set aside because they failed before.
        only: if given, just these ids.
    """
    return past_deadlocks(lambda: _expire(limit, skip, only))


def _expire(limit: int, skip: Sequence[str], only: Sequence[str] | None) -> int:
    with transaction.atomic():
        rows = Job.claims.too_late(limit=limit, skip=skip, only=only)
        for is_start, reason in ((True, START_DEADLINE_PASSED), (False, DEADLINE_PASSED)):
            late = [UUID(job_id) for job_id, was_start in rows if was_start is is_start]
            if late:
                cancel_jobs(late, reason=reason)
    return len(rows)


def late_ids(limit: int) -> list[str]:
    """The ids an expiry would take, to try them one by one."""
    is_late = Q(deadline__lte=Now()) | Q(attempt_count=0, start_deadline__lte=Now())
    late = Job.objects.filter(is_late, status__in=sorted(WAITING)).order_by("id").values_list("id", flat=True)
    return [str(id_) for id_ in late[:limit]]
