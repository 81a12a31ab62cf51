"""The jobs of a batch that somebody looks for: those that ended badly, those that run."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import QuerySet

from jobs.models import Job
from jobs.states import IN_FLIGHT, JobStatus

MOST = 20
_BAD = (JobStatus.DEAD_LETTER.value, JobStatus.FAILED.value)


def bad_and_running(batch_ids: Sequence[UUID]) -> tuple[list[Job], list[Job]]:
    """Some that failed for good, and some that workers hold; in one statement.

    Not the newest: to find those, all of them would have to be sorted.
    """
    rows = _some(batch_ids, _BAD).union(_some(batch_ids, sorted(IN_FLIGHT)), all=True)
    found = sorted(rows, key=lambda job: job.pk, reverse=True)
    return [job for job in found if job.status in _BAD], [job for job in found if job.status in IN_FLIGHT]


def _some(batch_ids: Sequence[UUID], statuses: Sequence[str]) -> QuerySet[Job]:
    return Job.objects.filter(batch_id__in=batch_ids, status__in=statuses).without_payload().order_by()[:MOST]
