"""Queues: create, change, pause, resume, delete. Whether the caller may is settled before.

A change is exact: it waits for claims of the queue that are under way, and once it was answered none goes by the old
state (ADR 0005).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from orgs.models import Project
from queues import sql
from queues.bounds import QUEUE_BOUNDS, check_policy, check_queue
from queues.locks import QUEUE_LOCK_CLASS
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.constraints import refusals, taken
from scheduler_project.lib.errors import Conflict, NotFound, ValidationFailed
from scheduler_project.lib.sql import run
from scheduler_project.lib.text import clean_name

MAX_NAME_CHARS = 100
MAX_REASON_CHARS = 500
#: What ``create_queue`` and ``update_queue`` take besides the name.
SETTINGS = frozenset({*QUEUE_BOUNDS, "default_retry_policy_id"})
_QUEUE_NAME_TAKEN = {"queues_name_in_project": taken("name", "is the name of another queue of this project")}
_POLICY_NAME_TAKEN = {"retry_policies_name_in_project": taken("name", "is the name of another policy of this project")}
_POLICY_IN_USE = {
    "queues_default_retry_policy_in_project": Conflict("A queue uses this policy."),
    "scheduled_jobs_retry_policy_in_project": Conflict("A schedule uses this policy."),
    "jobs_retry_policy_in_project": Conflict("A job, maybe a finished one, uses this policy."),
}


def create_queue(project: Project, *, name: str, **settings: Any) -> Queue:
    """A new queue.

    Args:
        settings: of SETTINGS; what is missing takes the model's default.

    Raises:
        ValidationFailed: naming the field and what is allowed.
        Conflict: the project has a queue of this name.
    """
    checked = _checked(project.pk, settings)
    with refusals(_QUEUE_NAME_TAKEN):
        return Queue.objects.create(project=project, name=_clean(name), **checked)


def update_queue(queue: Queue, **changes: Any) -> Queue:
    """Change a queue's name or settings, of SETTINGS.

    Raises:
        ValidationFailed, Conflict: as ``create_queue``; Conflict too if it was deleted.
    """
    name = changes.pop("name", None)
    limits = {"rate_limit": queue.rate_limit, "rate_period_secs": queue.rate_period_secs}
    checked = _checked(queue.project_id, {**limits, **changes})
    if name is not None:
        checked["name"] = _clean(name)
    with refusals(_QUEUE_NAME_TAKEN), locked(queue.pk):
        _write(queue, **checked)
    return queue


def pause_queue(queue: Queue, *, reason: str = "") -> Queue:
    """Let no more jobs of a queue be claimed, from the moment this returns; running ones go on.

    Raises:
        Conflict: it was deleted.
    """
    text = clean_name(reason, "reason", MAX_REASON_CHARS) if reason.strip() else ""
    with locked(queue.pk):
        _write(queue, is_paused=True, paused_reason=text)
    return queue


def resume_queue(queue: Queue) -> Queue:
    """Let a queue's jobs be claimed again. Workers find out by their next poll; a hint makes it sooner.

    Raises:
        Conflict: it was deleted.
    """
    with locked(queue.pk):
        _write(queue, is_paused=False, paused_reason="")
    return queue


def hide_queue(queue: Queue) -> None:
    """Mark a queue as deleted; its rows stay, its name is free again. ``jobs.services`` looks at its jobs before.

    The caller holds ``locked(queue.pk)``.
    """
    _write(queue, deleted_at=Now(), default_retry_policy_id=None)


@contextmanager
def locked(queue_id: UUID) -> Iterator[None]:
    """A transaction during which no job of the queue is claimed."""
    with transaction.atomic():
        run(sql.LOCK_QUEUE, {"lock_class": QUEUE_LOCK_CLASS, "queue_id": str(queue_id)})
        yield


def create_retry_policy(project: Project, *, name: str, **settings: Any) -> RetryPolicy:
    """A new retry policy.

    Raises:
        ValidationFailed: naming the field and what is allowed.
        Conflict: the project has a policy of this name.
    """
    check_policy(settings)
    with refusals(_POLICY_NAME_TAKEN):
        return RetryPolicy.objects.create(project=project, name=_clean(name), **settings)


def update_retry_policy(policy: RetryPolicy, **changes: Any) -> RetryPolicy:
    """Change a policy; attempts that end from now on go by it. The caller holds its row.

    Raises:
        ValidationFailed, Conflict: as ``create_retry_policy``.
        NotFound: somebody removed it meanwhile.
    """
    check_policy(changes)
    if "name" in changes:
        changes["name"] = _clean(changes["name"])
    with refusals(_POLICY_NAME_TAKEN):
        changed = RetryPolicy.objects.filter(pk=policy.pk).update(**changes) if changes else 1
    if not changed:
        raise NotFound("There is no such retry policy.")
    policy.refresh_from_db()
    return policy


def delete_retry_policy(policy: RetryPolicy) -> None:
    """Remove a policy.

    Raises:
        Conflict: queues, schedules or jobs, finished ones too, still use it.
        NotFound: somebody removed it meanwhile.
    """
    ids = {"policy_id": str(policy.pk), "project_id": str(policy.project_id)}
    with refusals(_POLICY_IN_USE):
        gone = run(sql.DELETE_RETRY_POLICY, ids)
    if not gone:
        raise NotFound("There is no such retry policy.")


def _clean(name: str) -> str:
    # The slash separates organization, project and queue where a queue is written as one text.
    return clean_name(name, "name", MAX_NAME_CHARS, forbidden="/")


def _checked(project_id: UUID, settings: Mapping[str, Any]) -> dict[str, Any]:
    unknown = set(settings) - SETTINGS
    if unknown:
        raise TypeError(f"no settings of a queue: {sorted(unknown)}")
    check_queue(settings)
    policy_id = settings.get("default_retry_policy_id")
    if policy_id is not None and not RetryPolicy.objects.filter(pk=policy_id, project_id=project_id).exists():
        raise ValidationFailed.of("default_retry_policy_id", "is no retry policy of this project")
    return dict(settings)


def _write(queue: Queue, **columns: Any) -> None:
    if not Queue.objects.filter(pk=queue.pk, deleted_at=None).update(**columns, updated_at=Now()):
        raise Conflict(f"Queue {queue.name} was deleted.")
    queue.refresh_from_db()
