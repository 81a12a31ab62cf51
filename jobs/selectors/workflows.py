"""Workflows: jobs that hang together by who waits for whom. No row holds one; they are found from a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from jobs.models import Job, JobDependency
from jobs.states import JobStatus

#: Jobs of one workflow that are looked at.
MOST_JOBS = 3_000
#: The newest edges of a project, from which its last workflows are put together, and how many of these are shown.
MOST_EDGES, MOST_WORKFLOWS = 2_000, 30


@dataclass(frozen=True, slots=True)
class Workflow:
    """All jobs that hang together with one, and (waited for, waits) of each edge."""

    jobs: Sequence[Job]
    edges: Sequence[tuple[UUID, UUID]]
    is_cut: bool

    @property
    def counts(self) -> Counter[str]:
        """Its jobs by status."""
        return Counter(job.status for job in self.jobs)


@dataclass(frozen=True, slots=True)
class Brief:
    """A workflow in a list; ``first`` is the oldest of its jobs that are known here."""

    first: Job
    last: Job
    counts: Counter[str]
    is_cut: bool

    @property
    def total(self) -> int:
        """Its jobs, at least so many if it is cut."""
        return self.counts.total()


def workflow_of(job_id: UUID) -> Workflow:
    """The workflow of a job, in three statements."""
    found = Job.claims.workflow_of(id_=str(job_id), most=MOST_JOBS + 1)
    ids = [UUID(text) for text in found[:MOST_JOBS]]
    columns = ("id", "job_type", "status", "attempt_count", "is_blocked", "created_at", "completed_at", "error_message")
    jobs = list(Job.objects.filter(pk__in=ids).only(*columns).order_by("id"))
    edges = JobDependency.objects.filter(job_id__in=ids).values_list("depends_on_job_id", "job_id")
    return Workflow(jobs, list(edges), len(found) > MOST_JOBS)


def recent_workflows(project_id: UUID) -> list[Brief]:
    """The newest workflows of a project, in two statements."""
    newest = JobDependency.objects.filter(project_id=project_id).order_by("-job_id")
    edges = list(newest.values_list("job_id", "depends_on_job_id")[:MOST_EDGES])
    groups = _joined(edges)[:MOST_WORKFLOWS]
    wanted = [id_ for group in groups for id_ in group]
    jobs = Job.objects.filter(pk__in=wanted).only("id", "job_type", "status", "created_at", "completed_at")
    known = {job.pk: job for job in jobs}
    is_full = len(edges) == MOST_EDGES
    return [
        _brief([known[id_] for id_ in sorted(group) if id_ in known], is_full)
        for group in groups
        if group & known.keys()
    ]


def _brief(jobs: Sequence[Job], is_cut: bool) -> Brief:
    return Brief(jobs[0], jobs[-1], Counter(job.status for job in jobs), is_cut)


def _joined(edges: Sequence[tuple[UUID, UUID]]) -> list[set[UUID]]:
    """The groups that edges join, that with the newest job first."""
    leader: dict[UUID, UUID] = {}

    def find(id_: UUID) -> UUID:
        while leader.setdefault(id_, id_) != id_:
            leader[id_] = leader[leader[id_]]
            id_ = leader[id_]
        return id_

    for a, b in edges:
        leader[find(a)] = find(b)
    groups: dict[UUID, set[UUID]] = {}
    for id_ in leader:
        groups.setdefault(find(id_), set()).add(id_)
    return sorted(groups.values(), key=max, reverse=True)


#: What is looked at first: what went wrong, then what runs, then what waits.
WORST_FIRST = (
    JobStatus.DEAD_LETTER, JobStatus.FAILED, JobStatus.RUNNING, JobStatus.CLAIMED, JobStatus.QUEUED,
    JobStatus.SCHEDULED, JobStatus.CANCELLED, JobStatus.COMPLETED,
)  # fmt: skip
