"""Workflows: jobs that hang together by who waits for whom. No row holds one; they are found from a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from jobs.models import Job, JobDependency
from jobs.states import JobStatus

#: Jobs of one workflow that are looked at.
MOST_JOBS = 3_000
#: The newest edges of a project, from which its last workflows are put together, and how many of these are shown.
MOST_EDGES, MOST_WORKFLOWS = 2_000, 30
#: What is looked at first: what went wrong, then what runs, then what waits.
WORST_FIRST = (
    JobStatus.DEAD_LETTER, JobStatus.FAILED, JobStatus.RUNNING, JobStatus.CLAIMED, JobStatus.QUEUED,
    JobStatus.SCHEDULED, JobStatus.CANCELLED, JobStatus.COMPLETED,
)  # fmt: skip


class Reached(NamedTuple):
    """A job of a workflow: what its graph has to know."""

    id: str
    job_type: str
    status: str
    parents: Sequence[str]


@dataclass(frozen=True, slots=True)
class Workflow:
    """All jobs that hang together with one."""

    jobs: Sequence[Reached]
    is_cut: bool

    @property
    def counts(self) -> Counter[str]:
        """Its jobs by status."""
        return Counter(job.status for job in self.jobs)

    def worst(self, ids: Collection[str] | None, most: int) -> list[Job]:
        """What somebody looks for first, of these jobs or of all."""
        chosen = [job for job in self.jobs if ids is None or job.id in ids]
        order = {status.value: place for place, status in enumerate(WORST_FIRST)}
        first = sorted(chosen, key=lambda job: (order[job.status], job.id))[:most]
        rows = Job.objects.filter(pk__in=[job.id for job in first]).without_payload()
        return sorted(rows, key=lambda job: (order[job.status], job.pk))


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
    """The workflow of a job, in one statement."""
    rows = Job.objects.workflow_of(id_=str(job_id), most=MOST_JOBS + 1)
    return Workflow([Reached(*row) for row in rows[:MOST_JOBS]], len(rows) > MOST_JOBS)


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
