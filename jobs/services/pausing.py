"""Pausing a queue so that nothing of it begins after the answer.

``queues.services`` makes sure that no job is *claimed* any more. What was claimed a moment before, ahead of a free seat
or with the claim's answer still on its way, has not begun: its row says ``claimed`` until the worker writes that the
handler runs, or gives the job back. Pausing waits for that.
"""

from __future__ import annotations

import time
from uuid import UUID

from jobs.models import EventType, Job
from jobs.services.outgoing import emit
from jobs.states import JobStatus
from queues.models import Queue
from queues.services import pause_queue

#: Workers say within a twentieth of a second what has begun, and give back within one second what has not. A worker
#: that is frozen says nothing: its jobs keep ``claimed`` in the queue's depth, for everybody to see.
LIMIT_S = 3.0
FIRST_LOOK_S, LONGEST_LOOK_S = 0.004, 0.05


def pause(queue: Queue, *, reason: str = "") -> Queue:
    """Let no more jobs of a queue be claimed or begin, from the moment this returns; running ones go on.

    Raises:
        ValidationFailed: the reason is too long.
        Conflict: the queue was deleted.
    """
    paused = pause_queue(queue, reason=reason)
    wait_until_begun(queue.pk)
    return paused


def tell_pause(queue: Queue, *, was_paused: bool) -> None:
    """In the transaction that may have paused or resumed it: tell those who subscribed, if it did."""
    if queue.is_paused != was_paused:
        type_ = EventType.QUEUE_PAUSED if queue.is_paused else EventType.QUEUE_RESUMED
        about = {"queue_id": str(queue.pk), "name": queue.name, "reason": queue.paused_reason}
        emit(type_, queue.project_id, about, queue_id=queue.pk)


def wait_until_begun(queue_id: UUID) -> bool:
    """Wait until each claimed job of a queue has begun or come back; False if some worker does not say.

    For after the commit of a pause: nothing is added meanwhile.
    """
    deadline, look_s = time.monotonic() + LIMIT_S, FIRST_LOOK_S
    while Job.objects.filter(queue_id=queue_id, status=JobStatus.CLAIMED).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(look_s)
        look_s = min(look_s * 1.5, LONGEST_LOOK_S)
    return True
