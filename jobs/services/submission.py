"""Submitting a job for somebody who may get it wrong: with what only the database knows to be right or wrong."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs.lifecycle.submit import Submitted, submit_job
from jobs.lifecycle.submit_unseen import Address, can_go_unseen, submit_unseen
from jobs.new_job import NewJob
from jobs.selectors.jobs import get_first_job
from jobs.states import JobStatus
from orgs.access import Actor, Machine
from queues.models import Queue
from queues.selectors import name_alone, queue_to_submit_to
from scheduler_project.lib import tracing
from scheduler_project.lib.constraints import refusals
from scheduler_project.lib.errors import Conflict, FieldError, ValidationFailed
from scheduler_project.lib.sealed_json import is_same

_KEY = "idempotency_key"
_FOREIGN_POLICY = {
    "jobs_retry_policy_in_project": ValidationFailed.of("retry_policy_id", "is no retry policy of this project")
}


@dataclass(frozen=True, slots=True)
class Receipt:
    """The job that stands for a submission: the new one, or the first of its idempotency key."""

    id: UUID
    queue_id: UUID
    job_type: str
    status: str
    priority: int
    run_at: datetime
    created_at: datetime
    idempotency_key: str | None
    trace_id: str
    attempt: int
    is_new: bool


def submit_to(actor: Actor, *, queue_id: UUID | None, path: str | None, job: NewJob) -> Receipt:
    """Submit one job of an actor to a queue that he names by its id or by its path.

    Most submissions of a machine take one statement. Where that can not be, or comes to nothing, the queue is looked
    at first: what is wrong, or stands under the key, is found in the usual order.

    Raises:
        ValidationFailed, NotFound, Forbidden: as ``queue_to_submit_to``.
        ValidationFailed, Conflict: as ``submit``.
    """
    name = name_alone(path)
    if isinstance(actor, Machine) and actor.may_submit and can_go_unseen(job) and (queue_id or name) is not None:
        with suppress(ValidationFailed):
            if found := submit_unseen(Address(actor.project_id, queue_id, name), job):
                return _new(found[0], job, found[1])
    return submit(queue_to_submit_to(actor, queue_id=queue_id, path=path), job)


def submit(queue: Queue, job: NewJob) -> Receipt:
    """Submit one job, or meet the one that was submitted before under the same key.

    Raises:
        ValidationFailed: naming the field and what is allowed.
        Conflict: the queue was deleted, or the key stands for other work: nothing was submitted.
    """
    if job.retry_policy_id is None:
        submitted = submit_job(queue, job)
    else:
        with refusals(_FOREIGN_POLICY):
            submitted = submit_job(queue, job)
    return _new(queue.pk, job, submitted) if submitted.is_new else _first(job, submitted)


def _new(queue_id: UUID, job: NewJob, submitted: Submitted) -> Receipt:
    # Made from what is known: reading the row back would be another round trip for each submission.
    return Receipt(
        id=submitted.id,
        queue_id=queue_id,
        job_type=job.job_type,
        status=JobStatus(submitted.status).value,
        priority=job.priority,
        run_at=submitted.run_at,
        created_at=submitted.created_at,
        idempotency_key=job.idempotency_key,
        trace_id=job.trace_id or tracing.current(),  # as placing.py stores it
        attempt=0,
        is_new=True,
    )


def _first(job: NewJob, submitted: Submitted) -> Receipt:
    first: Any = get_first_job(submitted.id, job_type=job.job_type, payload=job.payload)
    if not (first.is_same_work or (first.job_type == job.job_type and is_same(first.payload, job.payload))):
        message = "stands for a job of another type or payload"
        raise Conflict(f"{_KEY}: {message}", [FieldError(_KEY, message)])
    return Receipt(
        id=first.pk,
        queue_id=first.queue_id,
        job_type=first.job_type,
        status=first.status,
        priority=first.priority,
        run_at=first.run_at,
        created_at=first.created_at,
        idempotency_key=first.idempotency_key,
        trace_id=first.trace_id,
        attempt=first.attempt,
        is_new=False,
    )
