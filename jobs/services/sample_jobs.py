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

from django.db.models.functions import Now

from jobs.decisions import EXHAUSTED
from jobs.models import Job, JobBatch, ScheduledJob
from jobs.services.sample_writer import WORKER_ID, Attempt, Writer, sample_id
from jobs.states import ExecutionStatus, JobStatus
from queues.models import Queue

RUNNING_LEASE = timedelta(minutes=5)
_REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused"
_TIMEOUT = "TimeoutError: the payment provider did not answer within 30 s"
_LOST = "The lease ran out: the worker died, froze or lost its connection to the database."
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


PURGED_JOB_ID = sample_id(901)


def load_history(places: Places) -> None:
    """Load what is missing; the caller's transaction holds it together."""
    writer = Writer(datetime.now(UTC))  # sample times need no better clock
    writer.worker()
    _ended_well(writer, places)
    _unfinished(writer, places)
    _ended_badly(writer, places)
    _letters(writer, places)
    _schedules(places)
    _batches(places)


def _ended_well(writer: Writer, places: Places) -> None:
    ok = ExecutionStatus.COMPLETED
    first = Attempt(ok, timedelta(hours=3), 1.2, lines=(("info", "nothing to do, done"),))
    writer.job(1, places.default, "noop", JobStatus.COMPLETED, [first])
    lines = (("info", "going to sleep"), ("info", "awake again"))
    second = Attempt(ok, timedelta(hours=2), 100.7, lines=lines)
    writer.job(2, places.default, "sleep_100", JobStatus.COMPLETED, [second], result={"slept_ms": 100})
    third = Attempt(ok, timedelta(hours=1), 0.9)
    writer.job(3, places.high_priority, "noop", JobStatus.COMPLETED, [third], priority=10)


def _unfinished(writer: Writer, places: Places) -> None:
    writer.job(4, places.default, "sleep_1000", JobStatus.QUEUED)
    welcome = {"template": "welcome", "to": "new.user@example.com"}
    due = writer.now + timedelta(hours=2)
    writer.job(5, places.email, "email.welcome", JobStatus.SCHEDULED, payload=welcome, run_at=due)
    lease: dict[str, Any] = {
        "locked_by": WORKER_ID,
        "locked_at": writer.now,
        "lease_token": sample_id(902),
        "lease_expires_at": writer.now + RUNNING_LEASE,
        "fencing_number": 1,
    }
    writer.job(6, places.high_priority, "sleep_5000", JobStatus.RUNNING, **lease)


def _ended_badly(writer: Writer, places: Places) -> None:
    bad = ExecutionStatus.FAILED
    refused = Attempt(bad, timedelta(minutes=50), 12.4, _REFUSED, (("error", "connection refused, giving up"),))
    hook = {"url": "https://billing.example/hook", "method": "POST"}
    writer.job(7, places.default, "http.webhook", JobStatus.FAILED, [refused], payload=hook)
    slow = [
        Attempt(bad, timedelta(minutes=45), 30_004.1, _TIMEOUT),
        Attempt(bad, timedelta(minutes=40), 30_002.8, _TIMEOUT, (("warning", "second timeout, the order is void"),)),
    ]
    order = {"order": "A-1001", "amount": "49.90", "currency": "EUR"}
    writer.job(8, places.high_priority, "payment.charge", JobStatus.FAILED, slow, payload=order)
    lines: dict[int, tuple[tuple[str, str], ...]] = {
        1: (("warning", "downstream answered 500, trying again"),),
        5: (("error", "downstream answered 500 for the last time"),),
    }
    downstream = [
        Attempt(bad, timedelta(minutes=35 - 2**number // 2), 80.0 + number, _DOWNSTREAM, lines.get(number, ()))
        for number in range(1, 6)
    ]
    target = {"url": "https://downstream.example/orders", "method": "POST"}
    writer.job(9, places.default, "http.webhook", JobStatus.DEAD_LETTER, downstream, payload=target)
    cancelled: dict[str, Any] = {"error_message": "Cancelled by Bob Developer.", "cancel_requested_at": writer.now}
    writer.job(10, places.email, "sleep_30000", JobStatus.CANCELLED, **cancelled)


def _letters(writer: Writer, places: Places) -> None:
    exhausted = Job.objects.filter(pk=sample_id(9)).first()
    if exhausted is not None:  # retention may have archived it since
        writer.letter(
            910,
            exhausted.queue,
            job_id=exhausted.pk,
            job_type=exhausted.job_type,
            payload_snapshot=exhausted.payload,
            failure_reason=EXHAUSTED,
            attempt_count=5,
            last_error=_DOWNSTREAM,
        )
    # The job of this one has been purged; requeueing submits what the letter kept.
    writer.letter(
        911,
        places.background,
        job_id=PURGED_JOB_ID,
        job_type="sleep_2000",
        payload_snapshot={},
        failure_reason="lease expired",
        attempt_count=10,
        last_error=_LOST,
    )


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
        counts: dict[str, Any] = {
            "total_jobs": total,
            "completed_jobs": completed,
            "failed_jobs": failed,
            "status": status,
        }
        counts |= {"ended_at": Now()}
        JobBatch.objects.get_or_create(project_id=queue.project_id, name=name, defaults=counts)
