"""The one way into the table of jobs, for every kind of submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from jobs.events import jobs_changed
from jobs.handlers.registry import circuit_of
from jobs.hints import DUE, WORK, hint
from jobs.models import Job, JobDependency
from jobs.new_job import NewJob, Parent
from jobs.states import JobStatus
from queues.models import Queue
from scheduler_project.lib import tracing
from scheduler_project.lib.errors import Conflict
from scheduler_project.lib.sql import Row
from scheduler_project.lib.statements import plain_array, text_array

#: The scheduler looks at least this often by itself; only what is due sooner needs a hint.
SOON_S = 2.0
_STATUSES = {status.value: status for status in JobStatus}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submission; not ``is_new`` when the key was taken: then this is the first job."""

    id: UUID
    status: JobStatus
    run_at: datetime
    created_at: datetime
    is_new: bool


class Stored(NamedTuple):
    """What the database made of a job."""

    status: JobStatus
    run_at: datetime
    created_at: datetime


class Placed(NamedTuple):
    """A job on its way into the table."""

    id: UUID
    queue: Queue
    job: NewJob
    payload_json: str
    is_blocked: bool = False
    has_dependants: bool = False


#: What became of jobs, by the number of their id: a UUID is slow to hash, and a bulk looks each up several times.
Inserted = dict[int, Stored]


def insert(placed: Sequence[Placed]) -> Inserted:
    """Insert the jobs in one statement; what became of those whose key was free."""
    if any(item.job.idempotency_key is not None for item in placed):
        # In the same order for all: two batches that share keys would else wait for each other in a circle.
        placed = sorted(placed, key=lambda item: (item.queue.pk, item.job.idempotency_key or ""))
    jobs = [item.job for item in placed]
    _open_gates(placed)
    trace_id = tracing.current()
    rows = Job.claims.submit(
        ids=plain_array([item.id for item in placed]),
        project_ids=plain_array([item.queue.project_id for item in placed]),
        queue_ids=plain_array([item.queue.pk for item in placed]),
        job_types=text_array([job.job_type for job in jobs]),
        payloads=text_array([item.payload_json for item in placed]),
        priorities=plain_array([job.priority for job in jobs]),
        run_ats=_moments([job.run_at for job in jobs]),
        delays_s=plain_array([job.delay_s for job in jobs]),
        idempotency_keys=text_array([job.idempotency_key for job in jobs]),
        retry_policy_ids=plain_array([job.retry_policy_id for job in jobs]),
        max_attempts=plain_array([job.max_attempts for job in jobs]),
        scheduled_job_ids=plain_array([job.scheduled_job_id for job in jobs]),
        batch_ids=plain_array([job.batch_id for job in jobs]),
        trace_ids=text_array([job.trace_id or trace_id for job in jobs]),
        are_blocked=plain_array([item.is_blocked for item in placed]),
        have_dependants=plain_array([item.has_dependants for item in placed]),
        concurrency_keys=text_array([job.concurrency_key for job in jobs]),
        start_deadlines=_moments([job.start_deadline for job in jobs]),
        deadlines=_moments([job.deadline for job in jobs]),
        timeouts_s=plain_array([job.timeout_s for job in jobs]),
        circuits=text_array([circuit_of(job.job_type, job.payload) for job in jobs]),
    )
    return {
        id_.int: Stored(_STATUSES[status], _moment(run_at), _moment(created_at))
        for id_, status, run_at, created_at in rows
    }


@lru_cache(maxsize=1_024)
def _moment(microseconds: int) -> datetime:
    """Those of one statement are mostly the same."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _moments(moments: Sequence[datetime | None]) -> str:
    return text_array([moment.isoformat() if moment else None for moment in moments])


def _open_gates(placed: Sequence[Placed]) -> None:
    """Mark queues that get their first job with a concurrency key: from then on claims look at keys there."""
    new = {item.queue.pk: item.queue for item in placed if item.job.concurrency_key and not item.queue.has_keys}
    if new:
        with transaction.atomic():
            Queue.objects.filter(pk__in=sorted(new), has_keys=False).update(has_keys=True)
        for queue in new.values():
            queue.has_keys = True


def add_edges(project_id: UUID, edges: Sequence[tuple[UUID, Parent]]) -> None:
    """Write down who waits for whom."""
    rows = [
        JobDependency(
            project_id=project_id, job_id=child, depends_on_job_id=parent.job_id, on_failure=parent.on_failure
        )
        for child, parent in {(child, parent.job_id): (child, parent) for child, parent in edges}.values()
    ]
    JobDependency.objects.bulk_create(rows)


def refuse_deleted(queue: Queue) -> None:
    """Raise Conflict for a queue that was deleted."""
    if queue.deleted_at is not None:
        raise Conflict(f"Queue {queue.name} was deleted; submit to another one.")


def answers_of(placed: Sequence[Placed], inserted: Inserted) -> list[Submitted]:
    """The answers in order, with the first jobs of keys that were taken; wakes whom the new jobs concern."""
    new = [item for item in placed if item.id.int in inserted]
    wake(new, inserted)
    if len(new) == len(placed):
        return [Submitted(item.id, *inserted[item.id.int], is_new=True) for item in placed]
    taken = _first_jobs([item for item in placed if item.id.int not in inserted])
    return [
        Submitted(item.id, *inserted[item.id.int], is_new=True)
        if item.id.int in inserted
        else taken[item.queue.pk, item.job.idempotency_key or ""]
        for item in placed
    ]


def _first_jobs(old: Sequence[Placed]) -> dict[tuple[UUID, str], Submitted]:
    """The jobs that took the keys. A statement of its own: its snapshot sees what the insert waited for."""
    wanted = {(item.queue.pk, item.job.idempotency_key or "") for item in old}
    rows = Job.objects.filter(
        project_id__in={item.queue.project_id for item in old},
        queue_id__in={queue_id for queue_id, _ in wanted},
        idempotency_key__in={key for _, key in wanted},
    )
    found = {
        (queue_id, str(key)): Submitted(id_, JobStatus(status), run_at, created_at, is_new=False)
        for queue_id, key, id_, status, run_at, created_at in rows.values_list(
            "queue_id", "idempotency_key", "id", "status", "run_at", "created_at"
        )
    }
    missing = sorted(key for _, key in wanted - found.keys())
    if missing:
        # Purged between the two statements, or hidden by an older snapshot of the caller's transaction.
        raise Conflict(f"The first job of idempotency key {missing[0]!r} can not be seen; try again.")
    return found


def wake(placed: Sequence[Placed], inserted: Inserted) -> None:
    """Tell workers and scheduler what the new jobs concern."""
    ready, delayed = {}, []
    for item in placed:
        if inserted[item.id.int].status is JobStatus.QUEUED:
            ready[id(item.queue)] = item.queue
        elif not item.is_blocked:
            delayed.append(item.job)
    for queue_id in {str(queue.pk) for queue in ready.values()}:
        hint(WORK, queue_id)
    jobs_changed(item.id for item in placed)
    if delayed:
        soon = datetime.now(UTC) + timedelta(seconds=SOON_S)  # only decides whether a hint is worth sending
        if any(job.delay_s <= SOON_S if job.run_at is None else job.run_at <= soon for job in delayed):
            hint(DUE)


def wake_released(rows: Sequence[Row]) -> None:
    """Wake the queues of jobs that were let go."""
    for queue_id in {row[0] for row in rows}:
        hint(WORK, queue_id)
