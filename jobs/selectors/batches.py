"""How far batches are: counted from their jobs, so that the numbers can not drift."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count

from jobs.models import Job, JobBatch
from jobs.states import TERMINAL, JobStatus


@dataclass(frozen=True, slots=True)
class Progress:
    """The jobs of a batch by what became of them; ``cancelled`` ones are counted among neither of the other two."""

    total: int
    completed: int
    failed: int
    cancelled: int

    @property
    def pending(self) -> int:
        """Jobs that have not ended."""
        return self.total - self.completed - self.failed - self.cancelled


def progress_of(batch_ids: Iterable[UUID]) -> Progress:
    """The progress of these batches together; one scan of an index that holds only jobs of batches."""
    rows = Job.objects.filter(batch_id__in=list(batch_ids)).values_list("status").annotate(n=Count("id")).order_by()
    counts = dict(rows)
    return Progress(
        total=sum(counts.values()),
        completed=counts.get(JobStatus.COMPLETED, 0),
        failed=counts.get(JobStatus.FAILED, 0) + counts.get(JobStatus.DEAD_LETTER, 0),
        cancelled=counts.get(JobStatus.CANCELLED, 0),
    )


def progress_with_children(batch: JobBatch) -> Progress:
    """The progress of a batch and of those inside it; of an ended batch what was true when it ended."""
    if batch.ended_at is not None:
        cancelled = batch.total_jobs - batch.completed_jobs - batch.failed_jobs
        return Progress(batch.total_jobs, batch.completed_jobs, batch.failed_jobs, cancelled)
    return progress_of([batch.pk, *batch.children.values_list("id", flat=True)])


def has_pending_jobs(batch_id: UUID) -> bool:
    """Has a job of the batch not ended? One probe a status, whatever the batch's size."""
    unended = sorted(set(JobStatus.values) - TERMINAL)
    return any(Job.objects.filter(batch_id=batch_id, status=status).exists() for status in unended)


def has_failed_jobs(batch_id: UUID) -> bool:
    """Has a job of the batch ended other than completed?"""
    bad = sorted(TERMINAL - {JobStatus.COMPLETED})
    return any(Job.objects.filter(batch_id=batch_id, status=status).exists() for status in bad)
