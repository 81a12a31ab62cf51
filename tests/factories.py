"""Makes rows for tests; every row is one the product could have made."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models.functions import Now

from jobs.decisions import Cancelled, Discarded, Failed, Succeeded, Verdict
from jobs.lease import Ending, Lease
from jobs.lifecycle.claim import Claim, KnownTypes, Want, claim_jobs
from jobs.lifecycle.promote import promote_due
from jobs.lifecycle.settle import Settled, settle
from jobs.lifecycle.submit import NewJob, Submitted, submit_job, submit_jobs
from jobs.models import Job, JobExecution
from jobs.states import JobStatus
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
    assert Job.objects.filter(lease_token=lease.token).update(lease_expires_at=Now())


def end(lease: Lease, verdict: Verdict, *, ran_ms: float | None = 1.0, worker_id: UUID | str | None = None) -> Settled:
    """Settle one attempt."""
    return settle([Ending.of(lease, verdict, str(worker_id or uuid7()), ran_ms)])


def reload(job: Job | Submitted | UUID | str) -> Job:
    """The job as it is in the database now."""
    return Job.objects.get(pk=job.pk if isinstance(job, Job) else job.id if isinstance(job, Submitted) else job)


def status_of(job: Job | Submitted | UUID | str) -> str:
    """The job's status now."""
    return str(reload(job).status)


class JobIn(NamedTuple):
    """A job in some state; the lease it has or last had, if ever."""

    job: Job
    lease: Lease | None


def job_in(status: str, queue: Queue | None = None, **fields: Any) -> JobIn:
    """A job in a given state, brought there by the verbs of the life cycle; alone in its queue."""
    queue = queue or make_queue()
    if status == JobStatus.SCHEDULED:
        return JobIn(make_job(queue, **{"delay_s": 3_600, **fields}), None)
    if status == JobStatus.DEAD_LETTER:
        fields["max_attempts"] = 1
    job = make_job(queue, **fields)
    if status == JobStatus.QUEUED:
        return JobIn(job, None)
    lease = claim_one(queue, starts=0 if status == JobStatus.CLAIMED else 1)
    assert lease.job_id == str(job.pk)
    verdicts: dict[str, Verdict] = {
        JobStatus.COMPLETED: Succeeded('{"done":true}'),
        JobStatus.FAILED: Discarded("not worth it"),
        JobStatus.DEAD_LETTER: Failed("boom"),
        JobStatus.CANCELLED: Cancelled("stopped"),
    }
    if status in verdicts:
        end(lease, verdicts[status])
    job = reload(job)
    assert job.status == status
    return JobIn(job, lease)


def make_due(job: Job | UUID | str) -> None:
    """Let a scheduled job's time come now, and promote it."""
    pk = job.pk if isinstance(job, Job) else job
    assert Job.objects.filter(pk=pk, status=JobStatus.SCHEDULED).update(run_at=Now())
    assert promote_due(limit=1, only=[str(pk)]) == 1


def executions_of(job: Job | UUID | str) -> list[JobExecution]:
    """The job's attempts that have ended, in the order of their claims."""
    pk = job.pk if isinstance(job, Job) else job
    return list(JobExecution.objects.filter(job_id=pk).order_by("fencing_number"))
