"""The one way into the table of jobs, for every kind of submission."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
from scheduler_project.lib.statements import plain_array, text_array, varying

#: The scheduler looks at least this often by itself; only what is due sooner needs a hint.
SOON_S = 2.0
_STATUSES = {status.value: status for status in JobStatus}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_WISHES = _NO_TIES = (None,) * 4


class Submitted(NamedTuple):
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
    """Insert the jobs by the cheapest statement that will do; what became of those whose key was free."""
    if not placed:
        return {}
    _open_gates(placed)
    at: int | None = None
    if len(placed) == 1 and is_plain(placed[0].job):
        at = _insert_one(placed[0])
    elif all(map(_is_due_at_once, placed)):
        at = Job.claims.submit_at_once(**_columns(placed), **_counts(placed))
    if at is None:
        return _insert_any(placed)
    return dict.fromkeys([item.id.int for item in placed], Stored(JobStatus.QUEUED, moment_at(at), moment_at(at)))


def _insert_one(item: Placed) -> int | None:
    """When a plain job was queued; None if it was not, be it that its key was taken."""
    id_, queue, job, payload, is_blocked, has_dependants = item
    if is_blocked or has_dependants:
        return None
    where, values = {"project_id": queue.project_id, "queue_id": queue.pk}, plain_values(id_, job, payload)
    if job.idempotency_key is None:
        return Job.claims.submit_plain(**where, **values)
    found = Job.claims.submit_unseen(idempotency_key=job.idempotency_key, name=None, **where, **values)
    return found[1] if found else None


def _is_due_at_once(item: Placed) -> bool:
    """Is it certain that the job will be queued? Without a key, for no other job, at the time of its statement."""
    return _has_no_time(item.job) and item.job.idempotency_key is None and not item.is_blocked


def _has_no_time(job: NewJob) -> bool:
    return job.run_at is None and not job.delay_s


def is_plain(job: NewJob) -> bool:
    """Is it due at once, and asks for nothing beyond its type, payload, priority and trace? It may have a key."""
    wishes = (job.concurrency_key, job.retry_policy_id, job.max_attempts, job.timeout_s)
    ties = (job.start_deadline, job.deadline, job.scheduled_job_id, job.batch_id)
    return _has_no_time(job) and wishes == _NO_WISHES and ties == _NO_TIES


def plain_values(id_: UUID, job: NewJob, payload: str) -> dict[str, object]:
    """The columns of a job that ``is_plain``, but for those that say where it goes."""
    return {
        "id": id_,
        "job_type": job.job_type,
        "payload": payload,
        "priority": job.priority,
        "circuit": circuit_of(job.job_type, job.payload),
        "trace_id": job.trace_id or tracing.current(),
    }


def _insert_any(placed: Sequence[Placed]) -> Inserted:
    if any(item.job.idempotency_key is not None for item in placed):
        # In the same order for all: two batches that share keys would else wait for each other in a circle.
        placed = sorted(placed, key=lambda item: (item.queue.pk, item.job.idempotency_key or ""))
    jobs = [item.job for item in placed]
    rows = Job.claims.submit(
        **_columns(placed),
        run_ats=_moments([job.run_at for job in jobs]),
        delays_s=plain_array(varying([job.delay_s for job in jobs], 0)),
        idempotency_keys=text_array(varying([job.idempotency_key for job in jobs])),
        are_blocked=plain_array(varying([item.is_blocked for item in placed], usual=False)),
    )
    return {
        id_.int: Stored(_STATUSES[status], moment_at(run_at), moment_at(created_at))
        for id_, status, run_at, created_at in rows
    }


def _columns(placed: Sequence[Placed]) -> dict[str, object]:
    """The values of each column. One value throughout, as in most columns of a bulk, is sent once or not at all."""
    jobs = [item.job for item in placed]
    queue, job_type, trace_id = placed[0].queue, jobs[0].job_type, tracing.current()
    return {
        "project_id": queue.project_id,
        "queue_id": queue.pk,
        "job_type": job_type,
        "ids": plain_array([item.id for item in placed]),
        "project_ids": plain_array(varying([item.queue.project_id for item in placed], queue.project_id)),
        "queue_ids": plain_array(varying([item.queue.pk for item in placed], queue.pk)),
        "job_types": text_array(varying([job.job_type for job in jobs], job_type)),
        "payloads": text_array([item.payload_json for item in placed]),
        "priorities": plain_array(varying([job.priority for job in jobs], 0)),
        "retry_policy_ids": plain_array(varying([job.retry_policy_id for job in jobs])),
        "max_attempts": plain_array(varying([job.max_attempts for job in jobs])),
        "scheduled_job_ids": plain_array(varying([job.scheduled_job_id for job in jobs])),
        "batch_ids": plain_array(varying([job.batch_id for job in jobs])),
        "trace_ids": text_array(varying([job.trace_id or trace_id for job in jobs], "")),
        "have_dependants": plain_array(varying([item.has_dependants for item in placed], usual=False)),
        "concurrency_keys": text_array(varying([job.concurrency_key for job in jobs])),
        "start_deadlines": _moments([job.start_deadline for job in jobs]),
        "deadlines": _moments([job.deadline for job in jobs]),
        "timeouts_s": plain_array(varying([job.timeout_s for job in jobs])),
        "circuits": text_array(varying([circuit_of(job.job_type, job.payload) for job in jobs])),
    }


def _counts(placed: Sequence[Placed]) -> dict[str, object]:
    queues = {id(item.queue): item.queue for item in placed}
    counts = Counter([(id(item.queue), item.job.job_type) for item in placed])
    return {
        "counted_projects": plain_array([queues[queue].project_id for queue, _ in counts]),
        "counted_queues": plain_array([queues[queue].pk for queue, _ in counts]),
        "counted_types": text_array([job_type for _, job_type in counts]),
        "counts": plain_array(list(counts.values())),
    }


@lru_cache(maxsize=1_024)
def moment_at(microseconds: int) -> datetime:
    """Those of one statement are mostly the same."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _moments(moments: Sequence[datetime | None]) -> str:
    return text_array([moment.isoformat() if moment else None for moment in varying(moments)])


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
