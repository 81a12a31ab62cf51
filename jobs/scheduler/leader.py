"""Leadership: an advisory lock on the very session that does the work. A leader without its session can do nothing."""

from __future__ import annotations

import os
import socket

from jobs import metrics
from jobs.services.leadership import depose_idle_leader, end_term, renew, try_to_lead
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import session

log = logs.get(__name__)


class Leadership:
    """The lock as one process sees it. The lock is an economy: no duty relies on there being one leader."""

    def __init__(self, lock_id: int, frozen_after_s: float) -> None:
        self._lock_id, self._frozen_after_s = lock_id, frozen_after_s
        self._session: object = None
        self.term: int | None = None

    @property
    def is_held(self) -> bool:
        """Is the session that took the lock still the one in use?"""
        return self.term is not None and session() is self._session

    def try_to_take(self) -> bool:
        """Take the lock if it is free."""
        self.term = try_to_lead(self._lock_id, socket.gethostname(), os.getpid())
        if self.term is None:
            return False
        self._session = session()
        metrics.IS_LEADER.set(1)
        log.info("leadership_taken", term=self.term, pid=os.getpid())
        return True

    def renew(self) -> bool:
        """Show that the leader is at work; False if it is no longer the leader."""
        return self.term is not None and renew(self.term)

    def depose_frozen(self) -> None:
        """End the session of a leader that has been idle for far longer than any leader is."""
        for pid in depose_idle_leader(self._lock_id, self._frozen_after_s):
            log.warning("frozen_leader_deposed", backend_pid=pid, idle_for_s=self._frozen_after_s)

    def lose(self) -> None:
        """Note that the lock is gone with its session."""
        if self.term is not None:
            log.warning("leadership_lost", term=self.term)
        self.term = self._session = None
        metrics.IS_LEADER.set(0)

    def give_up(self) -> None:
        """Write down the end of the term; the session's end, which follows, frees the lock."""
        if self.term is not None:
            end_term(self.term)
            log.info("leadership_given_up", term=self.term)
            self.term = None
