"""submit: (new) -> queued or scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils.timezone import is_naive

from jobs.hints import DUE, WORK, hint
from jobs.models import Job
from jobs.states import JobStatus
from queues.models import MAX_ATTEMPTS, PRIORITY_BOUND, Queue
from scheduler_project.lib import json_gate
from scheduler_project.lib.errors import Conflict, FieldError, ValidationFailed
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.statements import plain_array, text_array

MAX_TYPE_CHARS = 200
MAX_KEY_CHARS = 255
MAX_TRACE_CHARS = 64
LATEST = datetime(9999, 1, 1, tzinfo=UTC)
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
#: The scheduler looks at least this often by itself; only what is due sooner needs a hint.
SOON_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to submit.

    Attributes:
        payload: any JSON value up to 1 MiB.
        run_at: when it is due, aware; None is ``delay_s`` seconds from now by the database's clock.
        idempotency_key: a second submission of the same key to the queue returns the first job.
        max_attempts: instead of the policy's, 1 to 1000.
    """

    job_type: str
    payload: Any = field(default_factory=dict)
    priority: int = 0
    run_at: datetime | None = None
    delay_s: float = 0.0
    idempotency_key: str | None = None
    retry_policy_id: UUID | None = None
    max_attempts: int | None = None
    trace_id: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submission; not ``is_new`` when the key was taken: then this is the first job."""

    id: UUID
    status: JobStatus
    is_new: bool


def submit_job(queue: Queue, job: NewJob) -> Submitted:
    """Submit one job. Joins the caller's transaction: rolled back, it never existed.

    Raises:
        ValidationFailed: naming the field and what is allowed.
        Conflict: the queue was deleted.
    """
    return submit_jobs(queue, [job])[0]


def submit_jobs(queue: Queue, jobs: Sequence[NewJob]) -> list[Submitted]:
    """Submit many jobs to one queue in one round trip; the answers stand in the order of ``jobs``.

    Raises:
        ValidationFailed: nothing was submitted; with more than one job the fields read ``jobs[3].run_at``.
        Conflict: the queue was deleted.
    """
    if queue.deleted_at is not None:
        raise Conflict(f"Queue {queue.name} was deleted; submit to another one.")
    payloads = _checked(jobs)
    ids = [uuid7() for _ in jobs]
    inserted = _insert(queue, jobs, payloads, ids)
    taken = _first_jobs(queue, [job.idempotency_key for job, id_ in zip(jobs, ids, strict=True) if id_ not in inserted])
    answers = []
    for job, id_ in zip(jobs, ids, strict=True):
        if id_ in inserted:
            answers.append(Submitted(id_, inserted[id_], is_new=True))
        else:
            first_id, status = taken[job.idempotency_key or ""]
            answers.append(Submitted(first_id, status, is_new=False))
    _wake(queue, jobs, inserted)
    return answers


def _insert(
    queue: Queue, jobs: Sequence[NewJob], payloads: list[str], ids: list[UUID]
) -> dict[UUID, JobStatus]:
    count = len(jobs)
    nothing, project = plain_array([None] * count), plain_array([queue.project_id] * count)
    rows = Job.claims.submit(
        ids=plain_array(ids),
        project_ids=project,
        queue_ids=plain_array([queue.pk] * count),
        job_types=text_array([job.job_type for job in jobs]),
        payloads=text_array(payloads),
        priorities=plain_array([job.priority for job in jobs]),
        run_ats=text_array([job.run_at.isoformat() if job.run_at else None for job in jobs]),
        delays_s=plain_array([job.delay_s for job in jobs]),
        idempotency_keys=text_array([job.idempotency_key for job in jobs]),
        retry_policy_ids=plain_array([job.retry_policy_id for job in jobs]),
        max_attempts=plain_array([job.max_attempts for job in jobs]),
        scheduled_job_ids=nothing,
        batch_ids=nothing,
        trace_ids=text_array([job.trace_id for job in jobs]),
        are_blocked=plain_array(["f"] * count),
    )
    return {id_: JobStatus(status) for id_, status in rows}


def _first_jobs(queue: Queue, keys: Sequence[str | None]) -> dict[str, tuple[UUID, JobStatus]]:
    """The jobs that took the keys. A statement of its own: its snapshot sees what the insert waited for."""
    if not keys:
        return {}
    rows = Job.objects.filter(project_id=queue.project_id, queue=queue, idempotency_key__in=keys)
    found = {str(key): (id_, JobStatus(status)) for key, id_, status in rows.values_list("idempotency_key", "id", "status")}
    missing = set(keys) - set(found)
    if missing:
        # Purged between the two statements, or hidden by an older snapshot of the caller's transaction.
        raise Conflict(f"The first job of idempotency key {sorted(map(str, missing))[0]!r} can not be seen; try again.")
    return found


def _wake(queue: Queue, jobs: Sequence[NewJob], inserted: dict[UUID, JobStatus]) -> None:
    statuses = set(inserted.values())
    if JobStatus.QUEUED in statuses:
        hint(WORK, str(queue.pk))
    if JobStatus.SCHEDULED in statuses:
        soon = datetime.now(UTC) + timedelta(seconds=SOON_S)  # only decides whether a hint is worth sending
        if any(job.delay_s <= SOON_S if job.run_at is None else job.run_at <= soon for job in jobs):
            hint(DUE)


def _checked(jobs: Sequence[NewJob]) -> list[str]:
    """The payloads as JSON text, after every field of every job has passed."""
    payloads, errors = [], []
    for index, job in enumerate(jobs):
        prefix = f"jobs[{index}]." if len(jobs) > 1 else ""
        try:
            payloads.append(json_gate.encode(job.payload))
        except json_gate.Unstorable as error:
            errors.append(FieldError(f"{prefix}payload", str(error)))
        errors += [FieldError(f"{prefix}{name}", text) for name, text in _complaints(job)]
    if errors:
        raise ValidationFailed("; ".join(f"{e.field}: {e.message}" for e in errors[:3]), errors)
    return payloads


def _complaints(job: NewJob) -> list[tuple[str, str]]:
    found = []
    if not _is_name(job.job_type, MAX_TYPE_CHARS):
        found.append(("job_type", f"must be 1 to {MAX_TYPE_CHARS} printable characters without blanks"))
    if not -PRIORITY_BOUND <= job.priority <= PRIORITY_BOUND:
        found.append(("priority", f"must be from {-PRIORITY_BOUND} to {PRIORITY_BOUND}"))
    if job.max_attempts is not None and not 1 <= job.max_attempts <= MAX_ATTEMPTS:
        found.append(("max_attempts", f"must be from 1 to {MAX_ATTEMPTS}"))
    if job.idempotency_key is not None and not _is_text(job.idempotency_key, MAX_KEY_CHARS):
        found.append(("idempotency_key", f"must be 1 to {MAX_KEY_CHARS} printable characters"))
    if job.trace_id and not _is_text(job.trace_id, MAX_TRACE_CHARS):
        found.append(("trace_id", f"must be at most {MAX_TRACE_CHARS} printable characters"))
    if job.run_at is not None and (is_naive(job.run_at) or not EARLIEST <= job.run_at < LATEST):
        found.append(("run_at", "must be a time with a zone, from 1970 to 9998"))
    if not 0 <= job.delay_s <= 366 * 86_400 * 10:
        found.append(("delay_s", "must be from 0 to ten years in seconds"))
    return found


def _is_text(value: str, limit: int) -> bool:
    return 0 < len(value) <= limit and value.isprintable()


def _is_name(value: str, limit: int) -> bool:
    return _is_text(value, limit) and " " not in value
