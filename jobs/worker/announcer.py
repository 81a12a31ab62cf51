"""Tells live events of a worker from a thread and connection of its own: the loop never waits for listeners."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping

from django.db import DatabaseError, InterfaceError

from jobs.events import Change, interest, publish
from jobs.lease import Lease
from jobs.lifecycle.exchange import Handover, Takeaway
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import drop_connection

log = logs.get(__name__)

#: Changes that come close together travel together.
GATHER_S = 0.05


def changes_of(handover: Handover, takeaway: Takeaway, in_hand: Mapping[str, Lease]) -> list[Change]:
    """What a round trip has changed; ``in_hand`` still holds the leases whose endings it wrote."""
    changes = [Change(lease.queue_id, "running", lease.job_id) for lease in handover.begun]
    for ending in handover.endings:
        lease, status = in_hand.get(ending.token), takeaway.settled.statuses.get(ending.job_id)
        if lease is not None and status is not None:
            changes.append(Change(lease.queue_id, status, ending.job_id))
    for lease in takeaway.leases:
        changes.append(Change(lease.queue_id, "running" if lease.is_running else "claimed", lease.job_id))
    return changes


class Announcer:
    """One thread; without listeners it asks once a second, and only while something happens."""

    def __init__(self) -> None:
        self._changes: deque[Change] = deque()
        self._has_some, self._is_over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="announcer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Tell what is left and end."""
        self._is_over.set()
        self._has_some.set()
        self._thread.join(timeout_s)

    @property
    def is_idle(self) -> bool:
        """Nobody looks: what is not told need not be put together."""
        return interest.is_ruled_out()

    def add(self, changes: Iterable[Change]) -> None:
        """Tell these soon; from any thread."""
        self._changes.extend(changes)
        self._has_some.set()

    def _run(self) -> None:
        while not self._is_over.is_set():
            self._has_some.wait()
            self._is_over.wait(GATHER_S)
            self._has_some.clear()
            self._tell()
        self._tell()

    def _tell(self) -> None:
        try:
            if not interest.exists():
                self._changes.clear()
                return
            while self._changes:
                # Taken before they are sent: what is lost on the way shows as a gap, what is sent twice would not.
                publish([self._changes.popleft() for _ in range(len(self._changes))])
        except (DatabaseError, InterfaceError) as error:
            log.warning("events_not_sent", error=str(error).strip())
            interest.forget()
            drop_connection()
        except Exception:  # boundary: a fault here must not end the telling
            log.exception("announcer_failed")
