"""Races whose losers are expected to fail: the outcome of every thread, errors included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import connection

from tests.threads import run_together
from tests.waiting import wait_until


def at_once(*functions: Callable[[], Any]) -> list[Any]:
    """What each function returned or raised, in their order."""
    return run_together([partial(_outcome, function) for function in functions])


def wait_for_a_waiter() -> None:
    """Return once a session of this database waits for a lock."""
    wait_for_waiters(1)


def wait_for_waiters(count: int) -> None:
    """Return once so many sessions of this database wait for locks."""

    def are_waiting() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
            )
            return int(cursor.fetchone()[0]) >= count

    wait_until(are_waiting, 10, what=f"{count} sessions that wait for a lock")


def _outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return error
