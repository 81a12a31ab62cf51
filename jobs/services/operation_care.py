"""Care in queueing jobs again: some of them first, and no faster than at a pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.models import ArchivedJob, Job, Operation
from jobs.states import TERMINAL, JobStatus

#: What a pace was not used for is made up for at most this long: then it goes on at its pace.
MADE_UP = timedelta(seconds=1)
PERIODS = {
    Operation.Per.SECOND: timedelta(seconds=1),
    Operation.Per.MINUTE: timedelta(minutes=1),
    Operation.Per.HOUR: timedelta(hours=1),
}
_MAX_CHARS = 500


@dataclass(frozen=True, slots=True)
class Verdict:
    """What has become of an operation's canary: ``failed`` says how one failed, empty if none did."""

    completed: int
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """What an operation may do now: so many rows; none for ``wait_s`` seconds, or until its canary has ended (None).

    With ``stopped_because`` it may do nothing ever more.
    """

    rows: int
    wait_s: float | None = None
    stopped_because: str = ""
    has_passed: bool = False


def leave_of(operation: Operation, now: datetime, most: int) -> Leave:
    """How many of ``most`` rows the next step may handle."""
    has_passed = False
    if operation.canary is not None and operation.canary_passed_at is None:
        job_ids = operation.canary_jobs or ()
        verdict = verdict_of(job_ids)
        has_passed = verdict.completed >= operation.canary
        left = operation.canary - len(job_ids)
        if verdict.failed or not (left or has_passed):
            return Leave(0, stopped_because=verdict.failed)
        most = min(most, left or most)
    rows = min(most, _by_pace(operation, now))
    wait_s = None if rows or operation.next_at is None else (operation.next_at - now).total_seconds()
    return Leave(rows, wait_s, has_passed=has_passed)


def next_at_of(operation: Operation, now: datetime, queued: int) -> datetime | None:
    """When its pace lets an operation go on that has queued so many jobs at ``now``."""
    if operation.pace is None or not queued:
        return operation.next_at
    return _not_long_ago(operation, now) + queued * _interval(operation)


def verdict_of(job_ids: Sequence[str]) -> Verdict:
    """How the jobs of a canary are doing. An attempt that failed is enough, whatever the job's policy says then.

    An attempt that was lost with its worker says nothing about the job, and is not held against it.
    """
    fields = ("id", "status", "attempt_count", "lost_count", "error_message")
    found = {str(row[0]): row[1:] for row in Job.objects.filter(pk__in=job_ids).values_list(*fields)}
    if missing := [id_ for id_ in job_ids if id_ not in found]:
        kept = ArchivedJob.objects.filter(pk__in=missing).values_list("id", "status", "attempt_count", "error_message")
        found |= {str(id_): (status, count, 0, error) for id_, status, count, error in kept}
    completed = 0
    for id_ in job_ids:
        status, used, lost, error = found.get(id_, ("gone", 0, 0, "nobody knows how it ended"))
        if status == JobStatus.COMPLETED:
            completed += 1
        elif used > lost or status in TERMINAL or status == "gone":
            return Verdict(completed, _failed(id_, status, error))
    return Verdict(completed)


def _failed(job_id: str, status: str, error: str | None) -> str:
    is_over = status in TERMINAL or status == "gone"
    how = f"is {JobStatus(status).label.lower()}" if status in TERMINAL else "is gone" if is_over else "failed again"
    return f"The canary {job_id} {how}{': ' if error else '.'}{error or ''}"[:_MAX_CHARS]


def _by_pace(operation: Operation, now: datetime) -> int:
    if operation.pace is None:
        return 1 << 30
    since = now - _not_long_ago(operation, now)
    return 1 + since // _interval(operation) if since >= timedelta(0) else 0


def _not_long_ago(operation: Operation, now: datetime) -> datetime:
    return max(operation.next_at or now, now - MADE_UP)


def _interval(operation: Operation) -> timedelta:
    assert operation.pace is not None  # noqa: S101 - whoever calls has looked
    return PERIODS[Operation.Per(operation.pace_per)] / operation.pace
