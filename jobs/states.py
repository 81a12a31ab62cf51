"""The states of a job and the arrows between them. This is the only place where they stand (SPEC, section 3)."""

from __future__ import annotations

from django.db.models import TextChoices


class JobStatus(TextChoices):
    """Where a job is in its life."""

    SCHEDULED = "scheduled", "Scheduled"
    QUEUED = "queued", "Queued"
    CLAIMED = "claimed", "Claimed"
    RUNNING = "running", "Running"
    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Failed"
    DEAD_LETTER = "dead_letter", "Dead letter"
    CANCELLED = "cancelled", "Cancelled"


IN_FLIGHT = frozenset({JobStatus.CLAIMED, JobStatus.RUNNING})
TERMINAL = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.CANCELLED})
WAITING = frozenset({JobStatus.SCHEDULED, JobStatus.QUEUED})

#: (from, to) -> the verb that draws the arrow; from None is a new job. ``failed`` on the way to ``scheduled`` or
#: ``dead_letter`` is passed through inside one statement and never seen from outside; so is ``running`` when a
#: prefetched job's handler ends before its row was marked.
ARROWS: dict[tuple[JobStatus | None, JobStatus], str] = {
    (None, JobStatus.SCHEDULED): "submit",
    (None, JobStatus.QUEUED): "submit",
    (JobStatus.SCHEDULED, JobStatus.QUEUED): "promote",
    (JobStatus.QUEUED, JobStatus.CLAIMED): "claim",
    (JobStatus.CLAIMED, JobStatus.RUNNING): "start",
    (JobStatus.RUNNING, JobStatus.COMPLETED): "settle",
    (JobStatus.RUNNING, JobStatus.FAILED): "settle",
    (JobStatus.FAILED, JobStatus.SCHEDULED): "settle",
    (JobStatus.FAILED, JobStatus.DEAD_LETTER): "settle",
    (JobStatus.CLAIMED, JobStatus.SCHEDULED): "settle",
    (JobStatus.RUNNING, JobStatus.SCHEDULED): "settle",
    (JobStatus.SCHEDULED, JobStatus.DEAD_LETTER): "settle",
    (JobStatus.CLAIMED, JobStatus.DEAD_LETTER): "settle",
    (JobStatus.RUNNING, JobStatus.DEAD_LETTER): "settle",
    (JobStatus.CLAIMED, JobStatus.QUEUED): "settle",
    (JobStatus.RUNNING, JobStatus.QUEUED): "settle",
    (JobStatus.RUNNING, JobStatus.CANCELLED): "settle",
    (JobStatus.QUEUED, JobStatus.CANCELLED): "cancel",
    (JobStatus.SCHEDULED, JobStatus.CANCELLED): "cancel",
    (JobStatus.FAILED, JobStatus.QUEUED): "requeue",
    (JobStatus.DEAD_LETTER, JobStatus.QUEUED): "requeue",
    (JobStatus.COMPLETED, JobStatus.QUEUED): "requeue",
    (JobStatus.CANCELLED, JobStatus.QUEUED): "requeue",
    # Beyond the specification's table: run again together with a job it waits for. (failed -> scheduled is above.)
    (JobStatus.DEAD_LETTER, JobStatus.SCHEDULED): "requeue",
    (JobStatus.COMPLETED, JobStatus.SCHEDULED): "requeue",
    (JobStatus.CANCELLED, JobStatus.SCHEDULED): "requeue",
}


def can_go(source: JobStatus | None, target: JobStatus) -> bool:
    """Is there an arrow from ``source`` to ``target``?"""
    return (source, target) in ARROWS


def sources_of(verb: str, target: JobStatus | None = None) -> list[JobStatus]:
    """The states a verb may be applied in, in the order of a job's life."""
    found = {s for (s, t), v in ARROWS.items() if v == verb and s is not None and target in (None, t)}
    return [status for status in JobStatus if status in found]


class ExecutionStatus(TextChoices):
    """How an attempt ended. ``running`` is never stored: the job's own row says it."""

    RUNNING = "running", "Running"
    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    SNOOZED = "snoozed", "Snoozed"
    INTERRUPTED = "interrupted", "Interrupted"
    LOST = "lost", "Lost"


class LogLevel(TextChoices):
    """Weight of a line in a job's log."""

    DEBUG = "debug", "Debug"
    INFO = "info", "Info"
    WARNING = "warning", "Warning"
    ERROR = "error", "Error"
