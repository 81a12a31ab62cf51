"""reap: attempts whose lease ran out are settled as lost."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from jobs.decisions import Lost
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.models import Job
from scheduler_project.lib.sql import past_deadlocks


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
        now = time.monotonic()
        endings = [
            Ending(job_id, token, attempt_count, claimed_at, Lost(is_poison(losses)), None, now, worker_id)
            for job_id, token, worker_id, claimed_at, attempt_count, losses in rows
        ]
        return len(settle(endings).statuses)


def is_poison(losses: int) -> bool:
    """A job is losing its process: is it the job's fault, after so many losses before in its budget of attempts?"""
    return losses + 1 >= int(settings.POISON_AFTER)


def expired_ids(limit: int) -> list[str]:
    """The ids a reap would take, to try them one by one."""
    with transaction.atomic():
        return [row[0] for row in Job.claims.expired(limit=limit, skip=(), only=None)]
