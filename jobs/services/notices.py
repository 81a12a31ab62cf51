"""Notices to the outside are jobs of the project they are about, in a queue of their own: retried, and to be seen.

What happens to that queue's jobs is never told by notices again, so nothing goes round in circles (ADR 26).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from jobs.handlers.email import EMAIL
from jobs.handlers.webhook.payload import BadPayload
from jobs.handlers.webhook.submission import check_submission
from jobs.lifecycle.submit import NewJob, submit_jobs
from jobs.models import NOTICES_QUEUE
from orgs.models import Project
from queues.models import Queue, RetryPolicy
from queues.services import create_queue, create_retry_policy
from scheduler_project.lib.errors import Conflict, ValidationFailed

WEBHOOK = "http.webhook"
#: Nine attempts: after 5 s, 25 s, 2 min, 10 min, 52 min, 4 h, 12 h and 12 h, spread by half.
_POLICY: dict[str, Any] = {
    "strategy": RetryPolicy.Strategy.EXPONENTIAL,
    "base_delay_ms": 5_000,
    "multiplier": 5.0,
    "max_delay_ms": 43_200_000,
    "max_attempts": 9,
}
_TIMEOUT_S = 15


def notices_queue(project_id: UUID) -> Queue:
    """The project's queue for notices, made when it is first needed."""
    found = _find(project_id)
    if found is not None:
        return found
    project = Project.objects.get(pk=project_id)
    try:
        policy = RetryPolicy.objects.filter(project=project, name=NOTICES_QUEUE).first()
        policy = policy or create_retry_policy(project, name=NOTICES_QUEUE, **_POLICY)
        return create_queue(project, name=NOTICES_QUEUE, priority=100, default_retry_policy_id=policy.pk)
    except Conflict:  # somebody else was faster
        return Queue.objects.get(project_id=project_id, name=NOTICES_QUEUE, deleted_at=None)


def is_notices_queue(queue_id: UUID | None) -> bool:
    """Are the jobs of this queue notices themselves? One that was deleted is still one."""
    return queue_id is not None and Queue.objects.filter(pk=queue_id, name=NOTICES_QUEUE).exists()


def webhook_job(url: str, type_: str, at: datetime, data: Mapping[str, Any], *, key: str) -> NewJob:
    """A call as Standard Webhooks has it; it is signed when it is made.

    Args:
        key: of two jobs with the same key only the first is one.
    """
    body = {"type": type_, "timestamp": at.isoformat(), "data": data}
    payload = {"url": url, "body": body, "timeout_s": _TIMEOUT_S}
    # Stored: the address was checked when it was set. One that is closed by now fails where people can see it.
    return NewJob(job_type=WEBHOOK, payload=payload, idempotency_key=key, is_stored=True)


def email_job(to: Sequence[str], subject: str, text: str, *, key: str) -> NewJob:
    """A mail through Django's settings."""
    payload = {"to": list(to), "subject": subject, "text": text}
    return NewJob(job_type=EMAIL, payload=payload, idempotency_key=key, is_stored=True)


def send(project_id: UUID, jobs: Sequence[NewJob]) -> list[UUID]:
    """Submit notices in the caller's transaction; the ids of their jobs."""
    return [submitted.id for submitted in submit_jobs(notices_queue(project_id), jobs)] if jobs else []


def check_url(url: str, field: str) -> str:
    """An address that a notice can be sent to.

    Raises:
        ValidationFailed: naming the field.
    """
    try:
        check_submission({"url": url})
    except BadPayload as error:
        message = str(error).partition(": ")[2]
        raise ValidationFailed.of(field, message) from None
    return url


def host_of(url: str) -> str:
    """The address without what may be secret in it."""
    return urlsplit(url).netloc[:100]


def _find(project_id: UUID) -> Queue | None:
    return Queue.objects.filter(project_id=project_id, name=NOTICES_QUEUE, deleted_at=None).first()
