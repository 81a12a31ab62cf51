"""Reads that may be a little old go to a copy of the database, if there is one (APP_DATABASE_REPLICA_URL).

Only what stands under ``@from_replica`` does, and only as long as the copy answers: if it does not, the same is read
from the database itself, and for a while nothing is asked of the copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db import Error, connections

from scheduler_project.lib import logs

P = ParamSpec("P")
T = TypeVar("T")

log = logs.get(__name__)

ALIAS = "replica"
#: A copy that failed is left alone for this long.
PAUSE_S = 10.0

_is_reading: ContextVar[bool] = ContextVar("reads_from_replica", default=False)
_away_until = 0.0


def is_reading() -> bool:
    """Is the copy to be asked now?"""
    return _is_reading.get()


class Router:
    """Django's router: reading under ``@from_replica`` goes to the copy, everything else to the database."""

    def db_for_read(self, model: object, **hints: object) -> str | None:
        """The copy, or no opinion."""
        return ALIAS if is_reading() else None

    def allow_relation(self, one: object, other: object, **hints: object) -> bool:
        """A row of the copy is the database's own row."""
        return True

    def allow_migrate(self, alias: str, app_label: str, **hints: object) -> bool | None:
        """The copy gets its tables from the database."""
        return False if alias == ALIAS else None


def from_replica(read: Callable[P, T]) -> Callable[P, T]:
    """Let a function that only reads do so from the copy; what it returns must not read any more later."""

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        global _away_until
        if ALIAS not in connections.settings or time.monotonic() < _away_until:
            return read(*args, **kwargs)
        token = _is_reading.set(True)
        try:
            return read(*args, **kwargs)
        except Error as error:
            # It may be gone, cancel what it reads because of what it must replay, or lack what a migration just made.
            _away_until = time.monotonic() + PAUSE_S
            _drop()
            log.warning("replica_failed", error=(str(error).splitlines() or [""])[0], pause_s=PAUSE_S)
        finally:
            _is_reading.reset(token)
        return read(*args, **kwargs)

    return reading


def settings_of(database: dict[str, Any]) -> dict[str, Any]:
    """Django's settings of the copy at an address; a page does not wait long for one that does not answer."""
    options = {"connect_timeout": 3, **database["OPTIONS"], "server_side_binding": False}
    kept = {"CONN_HEALTH_CHECKS": True, "CONN_MAX_AGE": 60, "DISABLE_SERVER_SIDE_CURSORS": True}
    return {**database, **kept, "OPTIONS": options, "TEST": {"MIRROR": "default"}}


def _drop() -> None:
    try:
        connections[ALIAS].close()
    except Error:
        connections[ALIAS].connection = None
