"""The sample data's jobs with their past: 10 jobs, 11 executions, 7 log lines, 2 dead letters, schedules, batches.

Unlike everything else in the product it writes states directly: it tells of a past that never was.

The running job is held by a sample worker whose lease ends after a few minutes. A live scheduler then finds the lease
lapsed, as after a crash, and a live worker runs the job: this is meant to be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from dlq.models import DeadLetter
from jobs.decisions import EXHAUSTED
from jobs.models import Job, JobBatch, JobExecution, JobLog, ScheduledJob, Worker
from jobs.states import TERMINAL, ExecutionStatus, JobStatus
from queues.models import Queue

# Identifiers of version 7 with a time long past: fixed, so that loading twice finds them, and never above real jobs.
_EPOCH_MS = 1_735_689_600_000
RUNNING_LEASE = timedelta(minutes=5)
_REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused"
_TIMEOUT = "TimeoutError: the payment provider did not answer within 30 s"
_DOWNSTREAM = "HTTPError: 500 Internal Server Error from https://downstream.example/orders"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the sample jobs lie; ``decided_by`` is who did what people do."""

    decided_by: UUID
    default: Queue
    high_priority: Queue
    email: Queue
    background: Queue
    analytics: Queue


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt that ended ``ago`` before now."""

    status: ExecutionStatus
    ago: timedelta
    ran_ms: float
    error: str | None = None
    lines: tuple[tuple[str, str], ...] = ()


def _sample_id(number: int) -> UUID:
    return UUID(int=_EPOCH_MS << 80 | 0x7 << 76 | 0b10 << 62 | number)


WORKER_ID, PURGED_JOB_ID = _sample_id(900), _sample_id(901)


def load_history(places: Places) -> None:
    """Load what is missing; the caller's transaction holds it together."""
    writer = _Writer(datetime.now(UTC))  # sample times need no better clock
    writer.worker()
    _ended_well(writer, places)
    _unfinished(writer, places)
    _ended_badly(writer, places)
    _letters(writer, places)
    _schedules(places)
    _batches(places)


def _ended_well(writer: _Writer, places: Places) -> None:
    ok = ExecutionStatus.COMPLETED
    first = _Attempt(ok, timedelta(hours=3), 1.2, lines=(("info", "nothing to do, done"),))
    writer.job(1, places.default, "noop", JobStatus.COMPLETED, [first])
    lines = (("info", "going to sleep"), ("info", "awake again"))
    second = _Attempt(ok, timedelta(hours=2), 100.7, lines=lines)
    writer.job(2, places.default, "sleep_100", JobStatus.COMPLETED, [second], result={"slept_ms": 100})
    third = _Attempt(ok, timedelta(hours=1), 0.9)
    writer.job(3, places.high_priority, "noop", JobStatus.COMPLETED, [third], priority=10)


def _unfinished(writer: _Writer, places: Places) -> None:
    writer.job(4, places.default, "sleep_1000", JobStatus.QUEUED)
    welcome = {"template": "welcome", "to": "new.user@example.com"}
    due = writer.now + timedelta(hours=2)
    writer.job(5, places.email, "email.welcome", JobStatus.SCHEDULED, payload=welcome, run_at=due)
    lease = {
        "locked_by": WORKER_ID,
        "locked_at": writer.now,
        "lease_token": _sample_id(902),
        "lease_expires_at": writer.now + RUNNING_LEASE,
        "fencing_number": 1,
    }
    writer.job(6, places.high_priority, "sleep_5000", JobStatus.RUNNING, **lease)


def _ended_badly(writer: _Writer, places: Places) -> None:
    bad = ExecutionStatus.FAILED
    refused = _Attempt(bad, timedelta(minutes=50), 12.4, _REFUSED, (("error", "connection refused, giving up"),))
    hook = {"url": "https://billing.example/hook", "method": "POST"}
    writer.job(7, places.default, "http.webhook", JobStatus.FAILED, [refused], payload=hook)
    slow = [
        _Attempt(bad, timedelta(minutes=45), 30_004.1, _TIMEOUT),
        _Attempt(bad, timedelta(minutes=40), 30_002.8, _TIMEOUT, (("warning", "second timeout, the order is void"),)),
    ]
    order = {"order": "A-1001", "amount": "49.90", "currency": "EUR"}
    writer.job(8, places.high_priority, "payment.charge", JobStatus.FAILED, slow, payload=order)
    lines: dict[int, tuple[tuple[str, str], ...]] = {
        1: (("warning", "downstream answered 500, trying again"),),
        5: (("error", "downstream answered 500 for the last time"),),
    }
    downstream = [
        _Attempt(bad, timedelta(minutes=35 - 2**number // 2), 80.0 + number, _DOWNSTREAM, lines.get(number, ()))
        for number in range(1, 6)
    ]
    target = {"url": "https://downstream.example/orders", "method": "POST"}
    writer.job(9, places.default, "http.webhook", JobStatus.DEAD_LETTER, downstream, payload=target)
    cancelled = {"error_message": "Cancelled by Bob Developer.", "cancel_requested_at": writer.now}
    writer.job(10, places.email, "sleep_30000", JobStatus.CANCELLED, **cancelled)


def _letters(writer: _Writer, places: Places) -> None:
    exhausted = Job.objects.filter(pk=_sample_id(9)).first()
    if exhausted is not None:  # retention may have archived it since
        writer.letter(
            910, exhausted.queue, exhausted.pk, exhausted.job_type, exhausted.payload, EXHAUSTED, 5, _DOWNSTREAM
        )
    # The job of this one has been purged; requeueing submits what the letter kept.
    lost = "The lease ran out: the worker died, froze or lost its connection to the database."
    writer.letter(911, places.background, PURGED_JOB_ID, "sleep_2000", {}, "lease expired", 10, lost)


def _schedules(places: Places) -> None:
    for name, queue, cron, job_type, is_active in (
        ("Daily cleanup", places.background, "0 3 * * *", "system.cleanup", True),
        ("Hourly digest", places.email, "0 * * * *", "test.echo", True),
        ("Weekly report", places.analytics, "0 8 * * 1", "sleep_500", True),
        ("Legacy sync", places.background, "*/15 * * * *", "noop", False),
    ):
        wanted = {"queue": queue, "cron_expression": cron, "job_type": job_type, "is_active": is_active}
        ScheduledJob.objects.get_or_create(project_id=queue.project_id, name=name, defaults=wanted)


def _batches(places: Places) -> None:
    for name, queue, total, completed, failed, status in (
        ("Nightly export", places.background, 100, 100, 0, JobBatch.Status.COMPLETED),
        ("Customer import", places.default, 500, 488, 12, JobBatch.Status.FAILED),
        ("Schema migration", places.background, 50, 20, 0, JobBatch.Status.CANCELLED),
    ):
        counts = {"total_jobs": total, "completed_jobs": completed, "failed_jobs": failed, "status": status}
        JobBatch.objects.get_or_create(project_id=queue.project_id, name=name, defaults=counts)


class _Writer:
    """Writes rows under fixed ids, none twice."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def worker(self) -> None:
        seen = {"hostname": "sample-worker", "pid": 1, "version": "sample", "max_concurrency": 10}
        Worker.objects.get_or_create(pk=WORKER_ID, defaults=seen)

    def job(
        self,
        number: int,
        queue: Queue,
        job_type: str,
        status: JobStatus,
        attempts: list[_Attempt] | None = None,
        **columns: Any,
    ) -> None:
        done = attempts or []
        ended_at = self.now - done[-1].ago if done else self.now
        columns = {
            "payload": {},
            "created_at": ended_at - timedelta(seconds=40),
            "run_at": ended_at - timedelta(seconds=40),
            "updated_at": ended_at,
            "completed_at": ended_at if status in TERMINAL else None,
            "attempt_count": len(done),
            "fencing_number": len(done),
            "error_message": done[-1].error if done else None,
            **columns,
        }
        row = Job(
            pk=_sample_id(number), project_id=queue.project_id, queue=queue, job_type=job_type, status=status, **columns
        )
        if Job.objects.filter(pk=row.pk).exists():
            return
        row.save(force_insert=True)
        for index, attempt in enumerate(done, 1):
            self._execution(row, index, attempt)

    def _execution(self, job: Job, number: int, attempt: _Attempt) -> None:
        finished_at = self.now - attempt.ago
        started_at = finished_at - timedelta(milliseconds=attempt.ran_ms)
        execution = JobExecution.objects.create(
            id=_sample_id(job.pk.int % 100 * 100 + number + 10_000),
            project_id=job.project_id,
            job=job,
            worker_id=WORKER_ID,
            attempt_number=number,
            fencing_number=number,
            status=attempt.status,
            claimed_at=started_at,
            started_at=started_at,
            finished_at=finished_at,
            duration_ms=attempt.ran_ms,
            error_message=attempt.error,
            error_stack=f"Traceback (most recent call last):\n  …\n{attempt.error}" if attempt.error else None,
            result=job.result,
        )
        for level, message in attempt.lines:
            line = {"execution_id": execution.pk, "ts": finished_at, "level": level, "message": message}
            JobLog.objects.create(project_id=job.project_id, job=job, **line)

    def letter(
        self,
        number: int,
        queue: Queue,
        job_id: UUID,
        job_type: str,
        payload: Any,
        reason: str,
        attempts: int,
        error: str,
    ) -> None:
        kept = {
            "queue": queue,
            "job_id": job_id,
            "job_type": job_type,
            "payload_snapshot": payload,
            "failure_reason": reason,
            "attempt_count": attempts,
            "last_error": error,
        }
        DeadLetter.objects.get_or_create(pk=_sample_id(number), project_id=queue.project_id, defaults=kept)
