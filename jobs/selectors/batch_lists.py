"""What an actor sees of batches, each with its progress."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from uuid import UUID

from django.db.models import Count, QuerySet

from jobs.models import Job, JobBatch
from jobs.selectors.batches import Progress
from jobs.states import JobStatus
from orgs.access import Actor, get_visible, visible
from orgs.models import Role


def list_batches(actor: Actor, project_id: UUID | None = None) -> QuerySet[JobBatch]:
    """The batches an actor sees, newest first."""
    batches = visible(JobBatch.objects.all(), actor, "project").order_by("-id")
    return batches if project_id is None else batches.filter(project_id=project_id)


def get_batch(actor: Actor, batch_id: UUID, *, needs: Role) -> JobBatch:
    """One batch. Raises NotFound or Forbidden."""
    return get_visible(JobBatch.objects.filter(pk=batch_id), actor, "project", needs=needs, what="batch")


def progress_each(batches: Sequence[JobBatch]) -> dict[UUID, Progress]:
    """The progress of each with those inside it, in two statements; of ended ones what was true at their end."""
    inside = {batch.pk: [batch.pk] for batch in batches if batch.ended_at is None}
    children = JobBatch.objects.filter(parent_id__in=list(inside)) if inside else JobBatch.objects.none()
    for id_, parent_id in children.values_list("id", "parent_id"):
        if parent_id:
            inside[parent_id].append(id_)
    ids = {id_ for all_ids in inside.values() for id_ in all_ids}
    counts: dict[UUID, Counter[str]] = defaultdict(Counter)
    jobs = Job.objects.filter(batch_id__in=ids).order_by() if ids else Job.objects.none()
    for batch_id, status, n in jobs.values_list("batch_id", "status").annotate(n=Count("id")):
        if batch_id is not None:
            counts[batch_id][status] += n
    return {
        batch.pk: _ended(batch) if batch.ended_at else _counted(sum((counts[i] for i in inside[batch.pk]), Counter()))
        for batch in batches
    }


def _ended(batch: JobBatch) -> Progress:
    cancelled = batch.total_jobs - batch.completed_jobs - batch.failed_jobs
    return Progress(batch.total_jobs, batch.completed_jobs, batch.failed_jobs, cancelled)


def _counted(counts: Counter[str]) -> Progress:
    return Progress(
        total=sum(counts.values()),
        completed=counts[JobStatus.COMPLETED],
        failed=counts[JobStatus.FAILED] + counts[JobStatus.DEAD_LETTER],
        cancelled=counts[JobStatus.CANCELLED],
    )
