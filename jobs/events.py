"""Live events: what changed, told to the web processes after the commit and only while somebody looks (ADR 17).

A message is JSON below 8,000 bytes on a channel of its own. ``s`` names the sender and ``n`` counts its messages, so
that who misses one knows; ``g`` says that some were never sent. ``t`` is the topic. A message about jobs is about one
queue, ``q``, and names the jobs by their new status in ``j``.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction

from jobs import sql
from scheduler_project.lib import logs
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.sql import run
from scheduler_project.lib.statements import plain_array, text_array

log = logs.get(__name__)

CHANNEL = "punctual_events"
#: The answer to "does anybody look?" is good for so long; listeners are told to look again after twice this time.
KNOWN_S = 1.0
#: Ids in one message; a message to a channel ends at 8,000 bytes.
IDS = 130
QUEUE, WORKER, SCHEDULE, OPERATION, DEAD_LETTER = "queue", "worker", "schedule", "operation", "dead_letter"


class Change(NamedTuple):
    """A job and the status it has now."""

    queue_id: str
    status: str
    job_id: str


class _Interest:
    """Whether anybody looks, asked at most once a second and only by processes in which something happens."""

    def __init__(self) -> None:
        self._is_watched, self._until = False, 0.0

    def is_ruled_out(self) -> bool:
        """Nobody looked a moment ago. Asks nothing."""
        return not settings.LISTEN or (not self._is_watched and time.monotonic() < self._until)

    def exists(self) -> bool:
        """Does anybody look?"""
        if settings.LISTEN and time.monotonic() >= self._until:
            self._is_watched = bool(run(sql.IS_WATCHED, {})[0][0])
            self._until = time.monotonic() + KNOWN_S
        return settings.LISTEN and self._is_watched

    def forget(self) -> None:
        """Ask again at the next occasion."""
        self._until = 0.0


class _Sender:
    """Numbers this process's messages. A number whose message was not sent shows its receivers the gap."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Be a sender nobody has heard of yet."""
        self._name, self._numbers = uuid7().hex, itertools.count(1)
        self._lock, self._has_lost_some = threading.Lock(), False

    def send(self, bodies: Sequence[dict[str, object]]) -> None:
        """Send messages, in their order."""
        # One at a time: messages of two threads must not overtake each other on their way.
        with self._lock:
            gap = {"g": 1} if self._has_lost_some else {}
            texts = [_text({"s": self._name, "n": next(self._numbers), **gap, **body}) for body in bodies]
            self._has_lost_some = True
            run(sql.PUBLISH, {"payloads": text_array(texts)})
            self._has_lost_some = False


interest = _Interest()
_sender = _Sender()
# Two processes that number their messages under one name would be taken for one that lost some.
os.register_at_fork(after_in_child=_sender.begin)


def jobs_changed(ids: Iterable[UUID | str], parents: Iterable[UUID | str] = ()) -> None:
    """Once the running transaction has committed: how these jobs are now, and those that wait for ``parents``."""
    chosen, waited_for = list(ids), list(parents)
    if chosen or waited_for:
        _after_commit(lambda: _bodies(_states_of(chosen, waited_for)))


def tell(topic: str, project_id: UUID | None, subject: object, event: str) -> None:
    """Once the running transaction has committed: something happened to a queue, worker, schedule …

    Args:
        project_id: whose it is; None for a worker that serves everybody.
    """
    body: dict[str, object] = {"t": topic, "p": str(project_id) if project_id else None, "id": str(subject), "e": event}
    _after_commit(lambda: [body])


def publish(changes: Iterable[Change]) -> None:
    """Tell changes now; outside of transactions. Raises what the database raises; the receivers see a gap then."""
    if bodies := _bodies(changes):
        _sender.send(bodies)


def watch(process_id: UUID, for_s: float) -> None:
    """A web process has listeners, for so long."""
    run(sql.WATCH, {"id": process_id, "for_s": for_s})


def _after_commit(make: Callable[[], list[dict[str, object]]]) -> None:
    transaction.on_commit(partial(_send_safely, make), robust=True)


def _send_safely(make: Callable[[], list[dict[str, object]]]) -> None:
    try:
        if interest.exists() and (bodies := make()):
            _sender.send(bodies)
    except (DatabaseError, InterfaceError) as error:
        interest.forget()
        log.warning("events_not_sent", error=str(error))


def _states_of(ids: Sequence[UUID | str], parents: Sequence[UUID | str]) -> list[Change]:
    rows = run(sql.STATES_OF, {"ids": plain_array(ids), "parents": plain_array(parents)})
    return [Change._make(row) for row in rows]


def _bodies(changes: Iterable[Change]) -> list[dict[str, object]]:
    """One message for each queue and so many ids; a job's changes stay in their order."""
    bodies: list[dict[str, object]] = []
    by_queue: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_queue[change.queue_id].append(change)
    for queue_id, some in by_queue.items():
        for first in range(0, len(some), IDS):
            groups = itertools.groupby(some[first : first + IDS], key=lambda change: change.status)
            runs = [[status, *(change.job_id for change in group)] for status, group in groups]
            bodies.append({"t": "job", "q": queue_id, "j": runs})
    return bodies


def _text(body: dict[str, object]) -> str:
    return json.dumps(body, separators=(",", ":"))
