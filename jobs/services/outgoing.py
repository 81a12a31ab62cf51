"""Events for the outside: written down with what they tell of, then made into deliveries, which are jobs (ADR 26).

The ends of jobs write theirs in the very statement that ends them (sql/settle.sql), and only where somebody
subscribed; everything else calls ``emit`` in its own transaction. The leader makes the deliveries: the event goes in
the transaction in which its jobs come, so neither a crash nor a second leader loses or doubles one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from jobs.models import EventSubscription, EventType, Job, OutgoingEvent
from jobs.services.notices import is_notices_queue, send, webhook_job
from scheduler_project.lib import logs
from scheduler_project.lib.errors import DomainError

log = logs.get(__name__)

#: What a delivery that was refused like this says of its target: it is gone, by the rules of HTTP.
_GONE = "answered 410"
_JOB_EVENTS = frozenset({EventType.JOB_DEAD_LETTER.value, EventType.JOB_FAILED.value})
#: The idempotency key of a delivery: which subscription, which event.
_KEY = "event"
_OURS = re.compile(r"event:([0-9a-f-]{36}):[0-9a-f-]{36}")


def emit(type_: EventType, project_id: UUID, data: Mapping[str, Any], *, queue_id: UUID | None = None) -> None:
    """In the caller's transaction: something happened that somebody may have subscribed to. One look if nobody has."""
    if EventSubscription.objects.filter(project_id=project_id, is_active=True, types__contains=[type_.value]).exists():
        OutgoingEvent.objects.create(project_id=project_id, type=type_.value, queue_id=queue_id, data=dict(data))


def deliver(*, limit: int, skip: Sequence[str] = (), only: Sequence[str] | None = None) -> int:
    """Make up to ``limit`` events into the jobs that deliver them; how many. Safe to run twice at once.

    Args:
        skip: ids set aside because they failed before.
        only: if given, just these ids.
    """
    with transaction.atomic():
        rows = OutgoingEvent.objects.select_for_update(skip_locked=True).exclude(pk__in=list(skip))
        rows = rows if only is None else rows.filter(pk__in=list(only))
        by_project: dict[UUID, list[OutgoingEvent]] = defaultdict(list)
        for event in rows.order_by("at", "id")[:limit]:
            by_project[event.project_id].append(event)
        done = [event.pk for id_, events in by_project.items() for event in events if _deliver_safely(id_, events)]
        if done:
            OutgoingEvent.objects.filter(pk__in=done).delete()
        return len(done)


def waiting_events(limit: int) -> list[str]:
    """The ids that ``deliver`` would take, to try them one by one."""
    return [str(id_) for id_ in OutgoingEvent.objects.order_by("at", "id").values_list("id", flat=True)[:limit]]


def send_test(subscription: EventSubscription) -> UUID:
    """A delivery that tells nothing, for a person to see whether one arrives; the id of its job."""
    with transaction.atomic():
        at = EventSubscription.objects.annotate(at=Now()).values_list("at", flat=True).get(pk=subscription.pk)
        data = {"subscription_id": str(subscription.pk), "name": subscription.name}
        key = f"{_KEY}:test:{subscription.pk}:{at.isoformat()}"
        return send(subscription.project_id, [webhook_job(subscription.url, "webhook.test", at, data, key=key)])[0]


def _deliver_safely(project_id: UUID, events: Sequence[OutgoingEvent]) -> bool:
    """False: the events stay and are tried again; one project's trouble is not another's."""
    try:
        with transaction.atomic():
            _deliver(project_id, events)
    except DomainError as error:
        log.error("events_not_delivered_yet", project_id=str(project_id), events=len(events), error=error.message)
        return False
    return True


def _deliver(project_id: UUID, events: Sequence[OutgoingEvent]) -> None:
    """Of one project. What became of a delivery is no event: its subscription takes note of it, if it went wrong."""
    active = list(EventSubscription.objects.filter(project_id=project_id, is_active=True).order_by("id"))
    jobs = []
    notices: dict[UUID | None, bool] = {}
    for event in events:
        queue_id = event.queue_id
        if queue_id not in notices:
            notices[queue_id] = is_notices_queue(queue_id)
        if event.type in _JOB_EVENTS and notices[queue_id]:
            _note_failure(project_id, event)
            continue
        data = {"project_id": str(project_id), **event.data}
        jobs += [
            webhook_job(one.url, event.type, event.at, data, key=f"{_KEY}:{one.pk}:{event.pk}")
            for one in active
            if event.type in one.types
        ]
    # A deleted project has no queues any more, and nobody who could have asked to be told.
    if jobs and active[0].project.deleted_at is None:
        send(project_id, jobs)


def _note_failure(project_id: UUID, event: OutgoingEvent) -> None:
    """A notice was given up: whoever it was for learns of it on the page, and one that is gone is left alone."""
    job = Job.objects.filter(project_id=project_id, pk=event.data["job_id"])
    key = job.values_list("idempotency_key", flat=True).first() or ""
    found = _OURS.fullmatch(key)
    if found is None:
        return
    error = str(event.data.get("error") or "")[:500]
    changes: dict[str, Any] = {"last_error": error, "last_error_at": event.at, "updated_at": Now()}
    if _GONE in error:
        changes["is_active"] = False
    EventSubscription.objects.filter(project_id=project_id, pk=UUID(found[1])).update(**changes)
    log.warning("event_not_delivered", job_id=event.data["job_id"], subscription_id=found[1], error=error)
