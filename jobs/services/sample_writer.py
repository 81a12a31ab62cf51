"""How the sample data's rows are written: under fixed ids, none twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from dlq.models import DeadLetter
from jobs.models import Job, JobExecution, JobLog, Worker
from jobs.states import TERMINAL, ExecutionStatus, JobStatus
from queues.models import Queue

# Identifiers of version 7 with a time long past: fixed, so that loading twice finds them, and never above real jobs.
_EPOCH_MS = 1_735_689_600_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that ended ``ago`` before now."""

    status: ExecutionStatus
    ago: timedelta
    ran_ms: float
    error: str | None = None
    lines: tuple[tuple[str, str], ...] = ()


def sample_id(number: int) -> UUID:
    """The id of a sample row."""
    return UUID(int=_EPOCH_MS << 80 | 0x7 << 76 | 0b10 << 62 | number)


WORKER_ID = sample_id(900)


class Writer:
    """Writes rows under fixed ids, none twice."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def worker(self) -> None:
        """The worker of all sample attempts."""
        seen = {"hostname": "sample-worker", "pid": 1, "version": "sample", "max_concurrency": 10}
        Worker.objects.get_or_create(pk=WORKER_ID, defaults=seen)

    def job(
        self,
        number: int,
        queue: Queue,
        job_type: str,
        status: JobStatus,
        attempts: list[Attempt] | None = None,
        **columns: Any,
    ) -> None:
        """A job with its past; ``columns`` override what follows from the attempts."""
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
            pk=sample_id(number), project_id=queue.project_id, queue=queue, job_type=job_type, status=status, **columns
        )
        if Job.objects.filter(pk=row.pk).exists():
            return
        row.save(force_insert=True)
        for index, attempt in enumerate(done, 1):
            self._execution(row, sample_id(10_000 + 100 * number + index), index, attempt)

    def _execution(self, job: Job, execution_id: UUID, number: int, attempt: Attempt) -> None:
        finished_at = self.now - attempt.ago
        started_at = finished_at - timedelta(milliseconds=attempt.ran_ms)
        execution = JobExecution.objects.create(
            id=execution_id,
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

    def letter(self, number: int, queue: Queue, **kept: Any) -> None:
        """A dead letter that is open."""
        DeadLetter.objects.get_or_create(
            pk=sample_id(number), project_id=queue.project_id, defaults={"queue": queue, **kept}
        )
