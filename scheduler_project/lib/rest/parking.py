"""Requests that wait: a few per process look again and again; in between they hold no connection to the database."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

from scheduler_project.lib.database import release_connection

T = TypeVar("T")

MAX_WAIT_MS = 30_000
#: Each waiting request holds a thread of the server; beyond so many in one process the others are answered at once.
PLACES = settings.WEB_THREADS // 2
FIRST_LOOK_S, LAST_LOOK_S = 0.05, 0.5

_places = threading.BoundedSemaphore(PLACES)


def look_until(look: Callable[[], T], wait_s: float) -> tuple[T, bool]:
    """Call ``look`` until it answers something true or the time is up.

    Returns its last answer, and whether a place to wait was free: without one it has looked just once.
    """
    wait_s = min(wait_s, settings.LONG_POLL_MAX_MS / 1000)
    deadline = time.monotonic() + wait_s
    found = look()
    if found or wait_s <= 0:
        return found, True
    if not _places.acquire(blocking=False):
        return found, False
    try:
        pause_s = FIRST_LOOK_S
        while not found and (left_s := deadline - time.monotonic()) > 0:
            release_connection()
            time.sleep(min(left_s, pause_s * random.uniform(0.8, 1.2)))  # noqa: S311 - spreads the looks only
            pause_s = min(pause_s * 1.5, LAST_LOOK_S)
            found = look()
        return found, True
    finally:
        _places.release()
