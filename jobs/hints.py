"""Wake-up hints by NOTIFY. The row is the truth: a lost hint costs at most one poll interval (ADR 0007)."""

from __future__ import annotations

import threading
import time
from functools import partial

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction

from jobs import sql
from scheduler_project.lib import logs
from scheduler_project.lib.sql import run

log = logs.get(__name__)

CHANNEL = "punctual"
#: At most one hint a topic in this time from one process. Who is woken looks again until it has passed.
QUIET_S = 0.05
WORK, CANCEL, DUE = "work", "cancel", "due"


class _Debounce:
    """Remembers when each topic was last sent; forgets topics that have been quiet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: dict[str, float] = {}

    def allows(self, topic: str) -> bool:
        now = time.monotonic()
        with self._lock:
            if now - self._sent.get(topic, -QUIET_S) < QUIET_S:
                return False
            if len(self._sent) > 1_000:
                self._sent = {t: at for t, at in self._sent.items() if now - at < QUIET_S}
            self._sent[topic] = now
            return True


_debounce = _Debounce()


def hint(kind: str, subject: str = "") -> None:
    """Send a hint once the running transaction has committed, at once if there is none."""
    transaction.on_commit(partial(_send, f"{kind} {subject}".strip()), robust=True)


def _send(topic: str) -> None:
    if not settings.LISTEN or not _debounce.allows(topic):
        return
    try:
        run(sql.HINT, {"topic": topic})
    except (DatabaseError, InterfaceError) as error:
        log.warning("hint_not_sent", topic=topic, error=str(error))
