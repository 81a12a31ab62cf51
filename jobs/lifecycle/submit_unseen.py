"""submit: (new) -> queued, into a queue that nobody has looked at: one statement finds it and inserts the job."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from jobs.events import jobs_changed
from jobs.hints import WORK, hint
from jobs.lifecycle.placing import Submitted, is_plain, moment_at, plain_values
from jobs.models import Job
from jobs.new_job import NewJob, checked, sealed
from jobs.states import JobStatus
from scheduler_project.lib.ids import uuid7

__all__ = ["Address", "can_go_unseen", "submit_unseen"]


class Address(NamedTuple):
    """A queue of a project, by its id or by its name."""

    project_id: UUID
    queue_id: UUID | None = None
    name: str | None = None


def can_go_unseen(job: NewJob) -> bool:
    """Is it due at once, without any wish that takes a look at the queue or at other rows?"""
    return is_plain(job) and not job.depends_on


def submit_unseen(address: Address, job: NewJob) -> tuple[UUID, Submitted] | None:
    """Submit a job that ``can_go_unseen``; the queue's id beside it.

    None if there is no such queue, or no more, or the key was taken: who looks at the queue finds out.

    Raises:
        ValidationFailed: naming the field and what is allowed.
    """
    [payload] = sealed([job], checked([job]))
    id_ = uuid7()
    values = plain_values(id_, job, payload)
    found = Job.claims.submit_unseen(idempotency_key=job.idempotency_key, **address._asdict(), **values)
    if found is None:
        return None
    queue_id, at = found
    hint(WORK, str(queue_id))
    jobs_changed([id_])
    moment = moment_at(at)
    return queue_id, Submitted(id_, JobStatus.QUEUED, moment, moment, is_new=True)
