"""What an operation does, said in a sentence from its frozen filter."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from jobs.models import Operation
from jobs.states import JobStatus
from scheduler_project.lib.ids import moment_of
from scheduler_project.lib.web.text import harmless

VERBS = {"cancel": "Cancel", "retry": "Queue again", "redrive": "Queue again", "discard": "Discard"}
_THINGS = {"cancel": "jobs", "retry": "jobs", "redrive": "jobs of dead letters", "discard": "dead letters"}


def care_of(operation: Operation) -> str:
    """For example: 5 first, the rest once they have completed; 30 a minute."""
    words = []
    if operation.canary is not None:
        words.append(f"{operation.canary:,} first, the rest once they have completed")
    if operation.pace is not None:
        per = {"second": "a second", "minute": "a minute", "hour": "an hour"}[operation.pace_per]
        words.append(f"{operation.pace:,} {per}")
    return "; ".join(words)


def sentence_of(operation: Operation, queue_names: Mapping[str, str], *, is_listed: bool) -> str:
    """For example: Cancel all queued jobs of the type mail.send in mail, submitted since 28 Nov 2026, 14:00."""
    filter_ = operation.filter
    verb, things = VERBS[operation.action], _THINGS[operation.action]
    if is_listed:
        return f"{verb} selected {things}"
    words = [verb, "all"]
    if status := filter_.get("status"):
        words.append(str(JobStatus(status).label).lower() if status in JobStatus.values else status)
    words.append(things)
    if job_type := filter_.get("job_type"):
        words.append(f"of the type {harmless(job_type, 80)}")
    if queue_id := filter_.get("queue_id"):
        words.append(f"in {harmless(queue_names.get(queue_id, 'a deleted queue'), 80)}")
    if since := _since(filter_):
        words.append(f"since {timezone.localtime(since):%d %b %Y, %H:%M}")
    if until := _moment(filter_.get("moved_to")):
        words.append(f"before {timezone.localtime(until):%d %b %Y, %H:%M}")
    return " ".join(words)


def _since(filter_: Mapping[str, str]) -> datetime | None:
    if "from_id" in filter_:  # the last id before the moment
        return moment_of(UUID(int=UUID(filter_["from_id"]).int + 1))
    return _moment(filter_.get("moved_from"))


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
