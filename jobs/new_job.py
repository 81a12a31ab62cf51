"""A job that is to be submitted, and what is wrong with it if anything is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from jobs.handlers.payloads import ANYTHING, Payload
from jobs.handlers.registry import known_handler, payload_problem
from queues.models import MAX_ATTEMPTS, PRIORITY_BOUND
from scheduler_project.lib import json_gate, sealed_json
from scheduler_project.lib.errors import FieldError, ValidationFailed
from scheduler_project.lib.json_schema import path_text

MAX_TYPE_CHARS = 200
MAX_KEY_CHARS = 255
MAX_TRACE_CHARS = 64
MAX_PARENTS = 1_000
#: Of a payload with sealed parts, which take more room than they did in the clear.
MOST_STORED_BYTES = 8 * json_gate.MAX_BYTES
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 1, 1, tzinfo=UTC)
SHORTEST_TIMEOUT_S, LONGEST_TIMEOUT_S = 0.1, 7 * 86_400.0
LONGEST_DELAY_S = 10 * 366 * 86_400


class Parent(NamedTuple):
    """A job to wait for; ``on_failure`` says what becomes of the waiting one if it does not complete.

    cancel: cancelled with the reason; run: it runs anyway; wait: it waits until the parent is retried.
    """

    job_id: UUID
    on_failure: Literal["cancel", "run", "wait"] = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to submit.

    Attributes:
        payload: any JSON value up to 1 MiB.
        run_at: when it is due, aware; None is ``delay_s`` seconds from now by the database's clock.
        idempotency_key: a second submission of the same key to the queue returns the first job.
        concurrency_key: of jobs of the queue with the same key at most ``max_concurrency_per_key`` are in flight.
        max_attempts: instead of the policy's, 1 to 1000.
        timeout_s: how long one attempt may take, 0.1 to 604,800; the handler's own limit holds too.
        start_deadline: not begun by then, the job is cancelled; aware.
        deadline: no attempt begins after it: a failed one is not retried, and a waiting job is cancelled; aware.
        depends_on: jobs of the same project that must end before it begins.
        is_stored: the payload comes from a row: its secrets are sealed, and what its handler says of it now is the
            worker's to judge.
    """

    job_type: str
    payload: Any = field(default_factory=dict)
    priority: int = 0
    run_at: datetime | None = None
    delay_s: float = 0.0
    idempotency_key: str | None = None
    concurrency_key: str | None = None
    retry_policy_id: UUID | None = None
    max_attempts: int | None = None
    timeout_s: float | None = None
    start_deadline: datetime | None = None
    deadline: datetime | None = None
    trace_id: str = ""
    scheduled_job_id: UUID | None = None
    batch_id: UUID | None = None
    depends_on: Sequence[Parent] = ()
    is_stored: bool = False


def checked(jobs: Sequence[NewJob]) -> list[str]:
    """The payloads as JSON text, after every field of every job has passed."""
    payloads, errors = [], []
    rules = _rules(jobs)
    for index, job in enumerate(jobs):
        prefix = prefix_of(index, jobs)
        try:
            text = json_gate.encode(job.payload, max_bytes=MOST_STORED_BYTES if job.is_stored else json_gate.MAX_BYTES)
        except json_gate.Unstorable as error:
            errors.append(FieldError(f"{prefix}payload", str(error)))
        else:
            payloads.append(text)
            rule = rules.get(job.job_type)
            if (rule is not None or sealed_json.SIGN in text) and not job.is_stored:
                errors += _payload_errors(job, rule, text, f"{prefix}payload")
            if not job.is_stored and (problem := payload_problem(job.job_type, job.payload)):
                errors.append(FieldError(f"{prefix}{problem[0]}", problem[1]))
        errors += [FieldError(f"{prefix}{name}", text) for name, text in _complaints(job)]
    if errors:
        raise ValidationFailed("; ".join(f"{e.field}: {e.message}" for e in errors[:3]), errors)
    return payloads


def sealed(jobs: Sequence[NewJob], texts: Sequence[str]) -> Sequence[str]:
    """The checked payloads as they are stored: what their handlers call secret is sealed."""
    if not any(rule.secrets for rule in _rules(jobs).values()):
        return texts
    return [text if job.is_stored else _sealed(job, text) for job, text in zip(jobs, texts, strict=True)]


def sealed_payload(job_type: str, payload: Any) -> Any:
    """A checked payload as it is stored; the very same if nothing in it is secret."""
    found = known_handler(job_type)
    return payload if found is None or not found.payload.secrets else found.payload.sealed(payload)


def has_secrets(job_type: str) -> bool:
    """Does the type's handler, if this process knows it, call parts of its payload secret?"""
    found = known_handler(job_type)
    return found is not None and bool(found.payload.secrets)


def _rules(jobs: Sequence[NewJob]) -> dict[str, Payload]:
    """What the handlers that this process knows declare, by job type; one look for each type, not for each job."""
    found = {job_type: known_handler(job_type) for job_type in {job.job_type for job in jobs}}
    return {name: known.payload for name, known in found.items() if known is not None and known.payload is not ANYTHING}


def _payload_errors(job: NewJob, rule: Payload | None, text: str, field: str) -> list[FieldError]:
    if sealed_json.SIGN in text and sealed_json.has_reserved_name(job.payload):
        return [FieldError(field, f"has the name {sealed_json.NAME!r}, which is reserved for sealed secrets")]
    return [] if rule is None else [FieldError(path_text(field, p.path), p.message) for p in rule.problems(job.payload)]


def _sealed(job: NewJob, text: str) -> str:
    stored = sealed_payload(job.job_type, job.payload)
    return text if stored is job.payload else json_gate.encode(stored, max_bytes=MOST_STORED_BYTES)


def prefix_of(index: int, items: Sequence[object]) -> str:
    """How a field of the job at ``index`` is named: with its place if there are several."""
    return f"jobs[{index}]." if len(items) > 1 else ""


def _complaints(job: NewJob) -> list[tuple[str, str]]:
    return [*_about_texts(job), *_about_numbers(job)]


def _about_texts(job: NewJob) -> Iterator[tuple[str, str]]:
    if not _is_name(job.job_type, MAX_TYPE_CHARS):
        yield "job_type", f"must be 1 to {MAX_TYPE_CHARS} printable characters without blanks"
    for name, key in (("idempotency_key", job.idempotency_key), ("concurrency_key", job.concurrency_key)):
        if key is not None and not _is_text(key, MAX_KEY_CHARS):
            yield name, f"must be 1 to {MAX_KEY_CHARS} printable characters"
    if job.trace_id and not _is_text(job.trace_id, MAX_TRACE_CHARS):
        yield "trace_id", f"must be at most {MAX_TRACE_CHARS} printable characters"


def _about_numbers(job: NewJob) -> Iterator[tuple[str, str]]:
    if not -PRIORITY_BOUND <= job.priority <= PRIORITY_BOUND:
        yield "priority", f"must be from {-PRIORITY_BOUND} to {PRIORITY_BOUND}"
    if job.max_attempts is not None and not 1 <= job.max_attempts <= MAX_ATTEMPTS:
        yield "max_attempts", f"must be from 1 to {MAX_ATTEMPTS}"
    if job.timeout_s is not None and not SHORTEST_TIMEOUT_S <= job.timeout_s <= LONGEST_TIMEOUT_S:
        yield "timeout_s", f"must be from {SHORTEST_TIMEOUT_S} to {LONGEST_TIMEOUT_S:.0f} seconds"
    yield from _about_moments(job)
    if not 0 <= job.delay_s <= LONGEST_DELAY_S:
        yield "delay_s", "must be from 0 to ten years in seconds"
    if len(job.depends_on) > MAX_PARENTS:
        yield "depends_on", f"must name at most {MAX_PARENTS:,} jobs"


def _about_moments(job: NewJob) -> Iterator[tuple[str, str]]:
    if job.run_at is job.start_deadline is job.deadline is None:
        return
    moments = {"run_at": job.run_at, "start_deadline": job.start_deadline, "deadline": job.deadline}
    wrong = [
        n
        for n, at in moments.items()
        if at is not None and not (at.utcoffset() is not None and EARLIEST <= at < LATEST)
    ]
    for name in wrong:
        yield name, "must be a time with a zone, from 1970 to 9998"
    for name in ("start_deadline", "deadline"):
        at = moments[name]
        if not wrong and job.run_at is not None and at is not None and at <= job.run_at:
            yield name, "must be later than run_at"


def _is_text(value: str, limit: int) -> bool:
    return 0 < len(value) <= limit and value.isprintable()


def _is_name(value: str, limit: int) -> bool:
    return _is_text(value, limit) and " " not in value
