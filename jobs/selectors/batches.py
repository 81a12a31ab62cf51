"""How far batches are: counted from their jobs, so that the numbers can not drift."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q

from jobs.models import Job, JobBatch
from jobs.states import TERMINAL, JobStatus

_UNENDED = sorted(set(JobStatus.values) - TERMINAL)
_BAD = sorted(TERMINAL - {JobStatus.COMPLETED})


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
    """The progress of a batch and of those inside it. Of what has ended: what was true then, jobs may be archived."""
    if batch.ended_at is not None:
        return _stored(batch)
    children = list(batch.children.all())
    found = progress_of([batch.pk, *(child.pk for child in children if child.ended_at is None)])
    for child in children:
        if child.ended_at is not None:
            ended = _stored(child)
            found = Progress(*(a + b for a, b in zip(astuple(found), astuple(ended), strict=True)))
    return found


def _stored(batch: JobBatch) -> Progress:
    cancelled = batch.total_jobs - batch.completed_jobs - batch.failed_jobs
    return Progress(batch.total_jobs, batch.completed_jobs, batch.failed_jobs, cancelled)


def has_pending_jobs(batch_id: UUID) -> bool:
    """Has a job of the batch not ended? One probe a status, whatever the batch's size."""
    return any(Job.objects.filter(batch_id=batch_id, status=status).exists() for status in _UNENDED)


def has_failure(batch: JobBatch) -> bool:
    """Has a job of the batch, or of one inside it, ended other than completed?"""
    ids = [batch.pk, *batch.children.values_list("id", flat=True)]
    if any(Job.objects.filter(batch_id=id_, status=status).exists() for id_ in ids for status in _BAD):
        return True
    ended_badly = [JobBatch.Status.FAILED, JobBatch.Status.CANCELLED]
    return batch.children.filter(status__in=ended_badly).exists()


def batches_to_fold() -> list[UUID]:
    """The unended batches for which something is to be done now, those inside others first.

    One statement with a few index probes for each unended batch, however many jobs they have.
    """
    jobs = Job.objects.filter(batch_id=OuterRef("pk"))
    pending = [Exists(jobs.filter(status=status)) for status in _UNENDED]
    failed = [Exists(jobs.filter(status=status)) for status in _BAD]
    children = JobBatch.objects.filter(parent_id=OuterRef("pk"))
    child_jobs = Job.objects.filter(batch__parent_id=OuterRef("pk"))
    child_failed = [Exists(child_jobs.filter(status=status)) for status in _BAD]
    ended_badly = Exists(children.filter(status__in=[JobBatch.Status.FAILED, JobBatch.Status.CANCELLED]))
    has_failed = Q(ended_badly)
    for probe in (*failed, *child_failed):
        has_failed |= Q(probe)
    is_over = Q(status=JobBatch.Status.RUNNING) & ~Q(Exists(children.filter(ended_at=None)))
    for probe in pending:
        is_over &= ~Q(probe)
    unended = JobBatch.objects.filter(status__in=[JobBatch.Status.OPEN, JobBatch.Status.RUNNING])
    found = unended.filter(is_over | (Q(failure_noted_at=None) & has_failed))
    return list(found.order_by(F("parent_id").desc(nulls_last=True), "id").values_list("id", flat=True))
