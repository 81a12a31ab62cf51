"""reap: attempts whose lease ran out are settled as lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.db import transaction

from jobs.decisions import Lost
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.models import Job, JobExecution
from jobs.states import ExecutionStatus
from scheduler_project.lib.sql import past_deadlocks

#: How attempts end that use one up and leave the job with another.
_USED = (ExecutionStatus.FAILED.value, ExecutionStatus.LOST.value)


def reap_expired(*, limit: int, skip: Sequence[str] = (), only: Sequence[str] | None = None) -> int:
    """End up to ``limit`` expired attempts and return how many. A late settle of their workers finds its token gone.

    Args:
        skip: ids set aside because they failed before.
        only: if given, just these ids.
    """
    return past_deadlocks(lambda: _reap(limit, skip, only))


def _reap(limit: int, skip: Sequence[str], only: Sequence[str] | None) -> int:
    with transaction.atomic():
        rows = Job.claims.expired(limit=limit, skip=skip, only=only)
        poison = _poison({row[0]: row[4] for row in rows}, settings.POISON_AFTER)
        now = time.monotonic()
        endings = [
            Ending(job_id, token, attempt_count, claimed_at, Lost(job_id in poison), None, now, worker_id)
            for job_id, token, worker_id, claimed_at, attempt_count in rows
        ]
        return len(settle(endings).statuses)


def _poison(used: dict[str, int], after: int) -> set[str]:
    """Of jobs that are being lost, those for which it is the ``after``-th time in their present budget of attempts.

    Args:
        used: job id -> attempts used before this one. A requeue starts that count anew and keeps the history, so
            the newest so many used attempts are the budget's.
    """
    suspects = {job_id: count for job_id, count in used.items() if count + 1 >= after}
    if not suspects or after == 1:
        return set(suspects)
    seen: Counter[UUID] = Counter()
    lost: Counter[str] = Counter()
    ended = JobExecution.objects.filter(job_id__in=list(suspects), status__in=_USED).order_by("-fencing_number")
    for job_id, status in ended.values_list("job_id", "status"):
        seen[job_id] += 1
        if seen[job_id] <= suspects[str(job_id)]:
            lost[str(job_id)] += status == ExecutionStatus.LOST
    return {job_id for job_id in suspects if lost[job_id] + 1 >= after}


def expired_ids(limit: int) -> list[str]:
    """The ids a reap would take, to try them one by one."""
    with transaction.atomic():
        return [row[0] for row in Job.claims.expired(limit=limit, skip=(), only=None)]
