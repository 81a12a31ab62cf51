"""Lists of jobs that cost the same however many jobs there are: ids by one index probe a queue, then their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models.functions import Left

from jobs.models import Job, JobExecution
from jobs.selectors.jobs import with_attempts
from jobs.states import ExecutionStatus
from orgs.access import Actor, visible
from queues.models import Queue
from scheduler_project.lib.ids import HIGHEST, LOWEST, first_id_at

#: With a type so many jobs are looked through for one page: no index holds types.
SCAN = 10_000
#: An error is looked for in so many of the newest failures of a project, and in so much of each.
MOST_FAILURES, ERROR_CHARS = 2_000, 500
#: So many times the rows of a page are looked at first.
FIRST_LOOK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs; times are those at which their ids were made, the end not included.

    Attributes:
        id_prefix: the hexadecimal digits that their ids begin with.
        error: a piece of the error of one of their attempts, in ``project_id``.
    """

    queue_ids: Sequence[UUID]
    status: str | None = None
    job_type: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    id_prefix: str = ""
    error: str = ""
    project_id: UUID | None = None

    @property
    def from_id(self) -> UUID:
        """The lowest id that fits."""
        first = LOWEST if self.created_from is None else first_id_at(self.created_from)
        return max(first, UUID(self.id_prefix.ljust(32, "0")))

    def below(self, cursor: UUID | None) -> UUID:
        """The id that all that fit are below of."""
        end = HIGHEST if self.created_to is None else first_id_at(self.created_to)
        if self.id_prefix:
            after = int(self.id_prefix, 16) + 1 << 4 * (32 - len(self.id_prefix))
            end = min(end, UUID(int=min(after, HIGHEST.int)))
        return end if cursor is None else min(end, cursor)


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first; ``resume_below`` is where to go on if looking for a type stopped early."""

    jobs: list[Job]
    resume_below: UUID | None = None


def queue_ids_of(actor: Actor) -> list[UUID]:
    """All queues an actor sees, deleted ones too: their jobs are history."""
    return list(visible(Queue.objects.all(), actor, "project").values_list("pk", flat=True))


def page_of_jobs(wanted: JobFilter, *, cursor: UUID | None, rows: slice) -> JobPage:
    """The jobs of ``rows`` among those that fit, without payloads and results.

    Whoever calls has made sure that the actor sees the queues.

    Args:
        cursor: only jobs older than this one.
    """
    limit = rows.stop - rows.start
    if not wanted.queue_ids:
        return JobPage([])
    if wanted.error:
        return _page_of_error(wanted, cursor, rows)
    place = {"from_id": wanted.from_id, "below_id": wanted.below(cursor), "status": wanted.status}
    if wanted.job_type is not None:
        return _page_of_type(wanted, limit, {**place, "skip": rows.start})
    ids = Job.objects.page_of(queue_ids=list(wanted.queue_ids), rows=rows.stop, limit=limit, skip=rows.start, **place)
    return JobPage(_rows(ids))


def _page_of_type(wanted: JobFilter, limit: int, place: dict[str, object]) -> JobPage:
    [queue_id] = wanted.queue_ids
    found = Job.objects.page_of_type(queue_id=queue_id, job_type=wanted.job_type, scan=SCAN, limit=limit, **place)
    resume = next((id_ for id_, is_match in found if not is_match), None)
    return JobPage(_rows([id_ for id_, is_match in found if is_match]), resume)


def _page_of_error(wanted: JobFilter, cursor: UUID | None, rows: slice) -> JobPage:
    """From the newest failures to their jobs. An attempt's id is younger than its job's."""
    failures = JobExecution.objects.filter(
        project_id=wanted.project_id or LOWEST,
        id__gte=wanted.from_id,
        status__in=[ExecutionStatus.FAILED, ExecutionStatus.LOST],
    )
    newest = failures.order_by("-id").values_list("job_id", Left("error_message", ERROR_CHARS))[:MOST_FAILURES]
    piece = wanted.error.lower()
    ids = {job_id for job_id, error in newest if piece in (error or "").lower()}
    candidates = sorted((id_ for id_ in ids if wanted.from_id <= id_ < wanted.below(cursor)), reverse=True)
    # Mostly all of them fit; two thousand at once would cost more than all else.
    few = rows.stop * FIRST_LOOK
    found = _fitting(wanted, candidates[:few])[: rows.stop]
    if len(found) < rows.stop:
        found += _fitting(wanted, candidates[few:])
    return JobPage(_rows(found[rows]))


def _fitting(wanted: JobFilter, ids: Sequence[UUID]) -> list[UUID]:
    """Of these jobs those that fit, in their order."""
    exact = {"status": wanted.status, "job_type": wanted.job_type}
    queues = set(wanted.queue_ids)
    jobs = Job.objects.filter(id__in=ids, **{name: value for name, value in exact.items() if value is not None})
    # The queues are looked up here: a thousand of them would be a statement of a thousand parameters.
    fitting = {id_ for id_, queue_id in jobs.values_list("id", "queue_id") if queue_id in queues} if ids else set()
    return [id_ for id_ in ids if id_ in fitting]


def _rows(ids: Sequence[UUID]) -> list[Job]:
    return list(with_attempts(Job.objects.without_payload().filter(id__in=ids)).order_by("-id")) if ids else []
