"""Batches: create, fill, close, cancel; and noticing their first failure and their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from jobs.hints import DUE, hint
from jobs.lifecycle.cancel import cancel_jobs
from jobs.lifecycle.submit import NewJob, Submitted, submit_job, submit_jobs
from jobs.models import EventType, Job, JobBatch
from jobs.new_job import checked, sealed_payload
from jobs.selectors.batches import Progress, batches_to_fold, has_failure, has_pending_jobs, progress_with_children
from jobs.services.outgoing import emit
from jobs.states import TERMINAL
from queues.models import Queue
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import session
from scheduler_project.lib.errors import Conflict, NotFound, ValidationFailed

log = logs.get(__name__)

Status = JobBatch.Status
CANCEL_AT_ONCE = 500
CALLBACKS = ("on_success", "on_end", "on_failure")
#: Stands for what a callback's payload gets, when the callback is judged: of the same form and not shorter.
_LIKE_A_BATCH = {
    "id": "0" * 36, "name": "n" * 800, "event": "on_failure", "total": 10**15, "completed": 10**15, "failed": 10**15,
    "cancelled": 10**15,
}  # fmt: skip


def create_batch(
    project_id: UUID,
    name: str,
    *,
    parent_id: UUID | None = None,
    callbacks: dict[str, dict[str, Any]] | None = None,
) -> JobBatch:
    """Create an open batch; it takes jobs until it is closed.

    Args:
        parent_id: a batch this one counts in; that one must not have a parent itself.
        callbacks: of on_success, on_end, on_failure: ``{"queue_id", "job_type", "payload"}`` each.

    Raises:
        ValidationFailed: naming the field.
    """
    name = name.strip()
    if not (name and len(name) <= 200 and name.isprintable()):
        raise ValidationFailed.of("name", "must be 1 to 200 printable characters")
    wanted = callbacks or {}
    for kind, callback in wanted.items():
        _check_callback(project_id, kind, callback)
    with transaction.atomic():
        if parent_id is not None:
            _check_parent(project_id, parent_id)
        stored = {kind: _stored(callback) for kind, callback in wanted.items()}
        return JobBatch.objects.create(project_id=project_id, name=name, parent_id=parent_id, **stored)


def add_jobs(batch_id: UUID, queue: Queue, jobs: Sequence[NewJob]) -> list[Submitted]:
    """Submit jobs as part of an open batch.

    Raises:
        Conflict: the batch is closed.
        ValidationFailed: as for any submission; jobs of a batch take no idempotency key, since the first job of a
            key may belong elsewhere.
    """
    with transaction.atomic():
        batch = _locked(batch_id)
        if batch.status != Status.OPEN:
            raise Conflict(f"The batch is {batch.status} and takes no more jobs.")
        if queue.project_id != batch.project_id:
            raise ValidationFailed.of("queue", "must be a queue of the batch's project")
        if any(job.idempotency_key is not None for job in jobs):
            raise ValidationFailed.of("idempotency_key", "jobs of a batch take none")
        return submit_jobs(queue, [replace(job, batch_id=batch_id) for job in jobs])


def close_batch(batch_id: UUID) -> None:
    """No more jobs come: the batch ends when its jobs have. Closing twice is no error."""
    with transaction.atomic():
        batch = _locked(batch_id)
        if batch.status == Status.OPEN:
            batch.status = Status.RUNNING
            batch.save(update_fields=["status", "updated_at"])
            hint(DUE)


def cancel_batch(batch_id: UUID) -> int:
    """Close it and cancel all its jobs that have not ended, in steps; how many were cancelled or asked to stop."""
    close_batch(batch_id)
    JobBatch.objects.filter(pk=batch_id, cancel_requested_at=None).update(cancel_requested_at=Now())
    count = 0
    for id_ in [*JobBatch.objects.filter(parent_id=batch_id).values_list("id", flat=True), batch_id]:
        close_batch(id_)
        unended = Job.objects.filter(batch_id=id_, cancel_requested_at=None).exclude(status__in=sorted(TERMINAL))
        while ids := list(unended.order_by("id").values_list("id", flat=True)[:CANCEL_AT_ONCE]):
            count += len(cancel_jobs(ids, reason="The batch was cancelled."))
    return count


def fold_batches() -> int:
    """Fire what is due in batches that have not ended; how many ended. A bad one never stops another."""
    return sum(_fold_safely(id_) for id_ in batches_to_fold())


def has_unended_batches() -> bool:
    """Is there a batch to look at?"""
    return JobBatch.objects.filter(status__in=[Status.OPEN, Status.RUNNING]).exists()


def _fold_safely(batch_id: UUID) -> bool:
    try:
        with transaction.atomic():
            return _fold(batch_id)
    except Exception as error:  # boundary: one bad row never stops the others
        if session() is None:
            raise
        log.error("batch_not_folded", batch_id=str(batch_id), error=str(error))
        return False


def _fold(batch_id: UUID) -> bool:
    rows = JobBatch.objects.select_for_update(skip_locked=True, no_key=True)
    batch = rows.filter(pk=batch_id, status__in=[Status.OPEN, Status.RUNNING]).first()
    if batch is None:
        return False
    if batch.failure_noted_at is None and has_failure(batch):
        JobBatch.objects.filter(pk=batch_id).update(failure_noted_at=Now())
        _fire(batch, "on_failure", progress_with_children(batch))
    is_over = batch.status == Status.RUNNING and not batch.children.filter(ended_at=None).exists()
    if not is_over or has_pending_jobs(batch.pk):
        return False
    _end(batch, progress_with_children(batch))
    return True


def _end(batch: JobBatch, found: Progress) -> None:
    if batch.cancel_requested_at is not None and found.cancelled:
        status = Status.CANCELLED
    else:
        status = Status.COMPLETED if found.completed == found.total else Status.FAILED
    JobBatch.objects.filter(pk=batch.pk).update(
        status=status,
        total_jobs=found.total,
        completed_jobs=found.completed,
        failed_jobs=found.failed,
        ended_at=Now(),
        updated_at=Now(),
    )
    about = {
        "batch_id": str(batch.pk), "name": batch.name, "status": status.value, "total": found.total,
        "completed": found.completed, "failed": found.failed, "cancelled": found.cancelled,
    }  # fmt: skip
    emit(EventType.BATCH_FINISHED, batch.project_id, about)
    _fire(batch, "on_end", found)
    if status == Status.COMPLETED:
        _fire(batch, "on_success", found)


def _fire(batch: JobBatch, kind: str, found: Progress) -> None:
    """Submit a callback's job; its idempotency key makes it one, whoever else is at work.

    One that can not be submitted does not keep the batch from ending: the batch says why.
    """
    callback = getattr(batch, kind)
    if callback is None:
        return
    about = {
        "id": str(batch.pk), "name": batch.name, "event": kind, "total": found.total, "completed": found.completed,
        "failed": found.failed, "cancelled": found.cancelled,
    }  # fmt: skip
    try:
        with transaction.atomic():
            queue = Queue.objects.get(pk=callback["queue_id"], project_id=batch.project_id)
            payload = {**(callback.get("payload") or {}), "batch": about}
            key = f"batch:{batch.pk}:{kind}"
            job = NewJob(job_type=callback["job_type"], payload=payload, idempotency_key=key, is_stored=True)
            submit_job(queue, job)
    except Exception as error:  # boundary: whatever is wrong with a callback is the callback's
        if session() is None:
            raise
        text = f"{kind}: {error}"[:500]
        log.error("callback_not_submitted", batch_id=str(batch.pk), error=text)
        JobBatch.objects.filter(pk=batch.pk).update(callback_error=text)


def _locked(batch_id: UUID) -> JobBatch:
    batch = JobBatch.objects.select_for_update(no_key=True).filter(pk=batch_id).first()
    if batch is None:
        raise NotFound("There is no such batch.")
    return batch


def _check_parent(project_id: UUID, parent_id: UUID) -> None:
    parent = JobBatch.objects.select_for_update(no_key=True).filter(pk=parent_id, project_id=project_id).first()
    if parent is None:
        raise ValidationFailed.of("parent_id", "there is no such batch in this project")
    if parent.parent_id is not None:
        raise ValidationFailed.of("parent_id", "is inside another batch itself; batches nest one level")
    if parent.status != Status.OPEN:
        raise Conflict(f"The batch {parent.name} is {parent.status} and takes no more.")


def _stored(callback: dict[str, Any]) -> dict[str, Any]:
    """A checked callback, with what its handler calls secret sealed."""
    if "payload" not in callback:
        return callback
    return {**callback, "payload": sealed_payload(callback["job_type"], callback["payload"])}


def _check_callback(project_id: UUID, kind: str, callback: Any) -> None:
    if kind not in CALLBACKS:
        raise ValidationFailed.of(kind, f"is no callback; there are {', '.join(CALLBACKS)}")
    if not isinstance(callback, dict) or not {"queue_id", "job_type"} <= callback.keys() <= {
        "queue_id", "job_type", "payload",
    }:  # fmt: skip
        raise ValidationFailed.of(kind, "must be an object with queue_id, job_type and, if wanted, payload")
    if not isinstance(callback.get("payload", {}), dict):
        raise ValidationFailed.of(f"{kind}.payload", "must be an object; the batch's numbers are added to it")
    if not isinstance(callback["job_type"], str):
        raise ValidationFailed.of(f"{kind}.job_type", "must be a text")
    try:
        checked(
            [NewJob(job_type=callback["job_type"], payload={**callback.get("payload", {}), "batch": _LIKE_A_BATCH})]
        )
    except ValidationFailed as error:
        raise ValidationFailed.of(f"{kind}.{error.details[0].field}", error.details[0].message) from None
    try:
        found = Queue.objects.filter(pk=UUID(str(callback["queue_id"])), project_id=project_id, deleted_at=None)
    except ValueError:
        found = Queue.objects.none()
    if not found.exists():
        raise ValidationFailed.of(f"{kind}.queue_id", "there is no such queue in this project")
