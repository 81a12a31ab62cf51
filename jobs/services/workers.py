"""Who works: registering, leaving, and retiring those that fell silent."""

from __future__ import annotations

import os
import socket
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now

from jobs.events import WORKER, tell
from jobs.models import Worker


def register(*, queue_names: tuple[str, ...], seats: int) -> UUID:
    """Write down that this process works from now on; its id is new for each start."""
    worker = Worker.objects.create(
        hostname=socket.gethostname(),
        pid=os.getpid(),
        version=settings.VERSION,
        subscribed_queues=list(queue_names),
        max_concurrency=seats,
    )
    tell(WORKER, None, worker.pk, "started")
    return worker.pk


def deregister(worker_id: UUID) -> None:
    """Write down that the process left in good order."""
    Worker.objects.filter(pk=worker_id).update(status=Worker.Status.STOPPED, last_seen_at=Now())
    tell(WORKER, None, worker_id, "stopped")


def retire_silent(silent_s: float) -> list[str]:
    """Workers not seen for ``silent_s`` are lost and their leases lapse at once; their ids.

    This only hastens what an expired lease does anyway: a worker that is alive after all is fenced by its tokens.
    """
    lost = Worker.presence.retire(silent_s=silent_s)
    for row in Worker.objects.filter(pk__in=lost) if lost else ():
        tell(WORKER, row.project_id, row.pk, "lost")
    return lost


def prune_heartbeats(keep_s: float, limit: int) -> None:
    """Forget up to ``limit`` heartbeats older than ``keep_s``."""
    Worker.presence.prune_heartbeats(keep_s=keep_s, limit=limit)
