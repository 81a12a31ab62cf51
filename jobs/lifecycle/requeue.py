"""requeue: an ended job gets a fresh budget of attempts; its executions stay."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from dlq.services import resolve_letters_of, resolve_letters_of_many
from jobs.events import jobs_changed
from jobs.hints import WORK, hint
from jobs.models import Job
from jobs.states import TERMINAL, JobStatus
from scheduler_project.lib.errors import Conflict, NotFound
from scheduler_project.lib.sql import past_deadlocks


def requeue_job(job_id: UUID, *, by: UUID | None) -> None:
    """failed, dead_letter, completed, cancelled -> queued, once for each end.

    A dead letter of the job is resolved in the same transaction. Of two people who decide at once, one wins.

    Args:
        by: the user who decided, None for a machine.

    Raises:
        NotFound: no such job.
        Conflict: the job has not ended, its dead letter was discarded, or its queue was deleted.
    """
    with transaction.atomic():
        _resolve(job_id, _locked([job_id]).get(job_id), by)
        _requeue([job_id], [])


def requeue_jobs(job_ids: Sequence[UUID], *, by: UUID | None) -> list[UUID]:
    """The same for many at once, in a fixed number of statements; those that were queued again.

    The others have not ended, are not there, were discarded, or their queue was deleted: they stay as they are.
    """
    with transaction.atomic():
        statuses = _locked(job_ids)
        ended = [id_ for id_, status in statuses.items() if status in TERMINAL]
        live = Job.objects.filter(pk__in=ended, queue__deleted_at=None).values_list("pk", flat=True)
        fit = set(live)
        resolved = resolve_letters_of_many(list(fit), by=by)
        again = [id_ for id_ in ended if id_ in fit and (id_ in resolved or statuses[id_] != JobStatus.DEAD_LETTER)]
        if again:
            _requeue(again, [])
        return again


def requeue_from(job_id: UUID, *, by: UUID | None) -> int:
    """Run an ended job and all that wait for it again, in their order; how many jobs that is.

    Jobs downstream that have not ended go on as they are.

    Raises:
        NotFound, Conflict: as for one job; nothing was changed.
    """
    return past_deadlocks(lambda: _requeue_from(job_id, by))


def _requeue_from(job_id: UUID, by: UUID | None) -> int:
    with transaction.atomic():
        downstream = [UUID(id_) for id_ in Job.objects.descendants(id_=str(job_id))]
        statuses = _locked([job_id, *downstream])
        _resolve(job_id, statuses.get(job_id), by)
        again = [id_ for id_ in downstream if statuses.get(id_) in TERMINAL and _may_run_again(id_, statuses, by)]
        _requeue([job_id, *again], again)
        return 1 + len(again)


def _may_run_again(job_id: UUID, statuses: dict[UUID, str], by: UUID | None) -> bool:
    """Resolves the job's letter; False if somebody discarded it: that job stays dead, and what waits for it waits."""
    return resolve_letters_of(job_id, by=by) or statuses[job_id] != JobStatus.DEAD_LETTER


def _locked(job_ids: Sequence[UUID]) -> dict[UUID, str]:
    rows = Job.objects.select_for_update(no_key=True).filter(pk__in=job_ids).order_by("id")
    return dict(rows.values_list("id", "status"))


def _resolve(job_id: UUID, status: str | None, by: UUID | None) -> None:
    if status is None:
        raise NotFound("There is no such job.")
    if status not in TERMINAL:
        raise Conflict(f"The job is {status}: only a job that has ended can be queued again.")
    if not resolve_letters_of(job_id, by=by) and status == JobStatus.DEAD_LETTER:
        raise Conflict("The dead letter of this job was discarded: the job can not be queued again.")


def _requeue(job_ids: list[UUID], blocked: list[UUID]) -> None:
    deleted = Job.objects.filter(pk__in=job_ids, queue__deleted_at__isnull=False).values_list("queue__name", flat=True)
    if name := deleted.first():
        raise Conflict(f"The queue {name} was deleted: nobody would run the job.")
    rows = Job.claims.requeue(ids=[str(id_) for id_ in job_ids], blocked=[str(id_) for id_ in blocked])
    for queue_id in {queue_id for _, queue_id, status in rows if status == JobStatus.QUEUED}:
        hint(WORK, queue_id)
    jobs_changed(job_id for job_id, _, _ in rows)
