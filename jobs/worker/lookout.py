"""Notices that no scheduler leads: who could say so is missing then, and only a worker can send the notice anyway."""

from __future__ import annotations

import random
import threading

from django.db import DatabaseError, InterfaceError

from jobs.services.alerting import look_without_leader
from jobs.services.outgoing import deliver
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import drop_connection

log = logs.get(__name__)

#: Each worker looks this often, spread by half. Two at once do no harm: an alert fires once.
LOOK_S = 10.0
EVENTS_AT_ONCE = 100


class Lookout:
    """One thread; it holds no connection between two looks, each of which is one or two small questions."""

    def __init__(self, look_s: float = LOOK_S) -> None:
        self._look_s = look_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lookout", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End after the look that is under way."""
        self._is_over.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._is_over.wait(self._look_s * random.uniform(0.5, 1.5)):  # noqa: S311 - spreads load only
            look_out()


def look_out() -> None:
    """One look; its failure is not the worker's."""
    try:
        if look_without_leader():
            deliver(limit=EVENTS_AT_ONCE)
    except (DatabaseError, InterfaceError) as error:
        log.warning("lookout_failed", error=str(error).strip())
    except Exception:  # boundary: a fault here must not end the watch
        log.exception("lookout_failed")
    finally:
        drop_connection()
