"""Makes rows for tests; every row is one the product could have made."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

from jobs.lease import Lease
from jobs.lifecycle.claim import Claim, KnownTypes, Want, claim_jobs
from jobs.lifecycle.submit import NewJob, Submitted, submit_job, submit_jobs
from jobs.models import Job
from orgs.models import Organization, Project
from queues.models import Queue
from scheduler_project.lib.ids import uuid7

_numbers = itertools.count(1)
ANY_TYPE = KnownTypes.of([], ["*"])


def make_organization(**fields: Any) -> Organization:
    number = next(_numbers)
    return Organization.objects.create(**{"name": f"Org {number}", "slug": f"org-{number}", **fields})


def make_project(organization: Organization | None = None, **fields: Any) -> Project:
    number = next(_numbers)
    organization = organization or make_organization()
    return Project.objects.create(
        organization=organization, **{"name": f"Project {number}", "slug": f"project-{number}", **fields}
    )


def make_queue(project: Project | None = None, **fields: Any) -> Queue:
    project = project or make_project()
    return Queue.objects.create(project=project, **{"name": f"queue-{next(_numbers)}", **fields})


def path_of(queue: Queue) -> str:
    """The queue as the command line names it."""
    return f"{queue.project.organization.slug}/{queue.project.slug}/{queue.name}"


def make_job(queue: Queue, job_type: str = "noop", **fields: Any) -> Job:
    return Job.objects.get(pk=submit_job(queue, NewJob(job_type=job_type, **fields)).id)


def make_jobs(queue: Queue, count: int, job_type: str = "noop", **fields: Any) -> list[Submitted]:
    made: list[Submitted] = []
    while len(made) < count:
        made += submit_jobs(queue, [NewJob(job_type=job_type, **fields)] * min(1_000, count - len(made)))
    return made


def claim_from(
    queue: Queue, seats: int = 1, *, worker_id: UUID | str | None = None, starts: int | None = None
) -> list[Lease]:
    """Claim up to ``seats`` jobs of a queue, all begun unless ``starts`` says fewer."""
    wants = [Want(str(queue.pk), seats)]
    return claim_jobs(Claim(str(worker_id or uuid7()), wants, ANY_TYPE, seats if starts is None else starts))


def claim_one(queue: Queue, **fields: Any) -> Lease:
    [lease] = claim_from(queue, 1, **fields)
    return lease


def lapse(lease: Lease) -> None:
    """Let a lease run out now."""
    from django.db.models.functions import Now

    assert Job.objects.filter(lease_token=lease.token).update(lease_expires_at=Now())
