"""Django's connection of the current thread: handlers may have used the ORM, most have not."""

from __future__ import annotations

import contextlib

from django.db import DatabaseError, InterfaceError, connection, connections


def has_open_connection() -> bool:
    """Has this thread opened a database connection?"""
    return any(conn.connection is not None for conn in connections.all(initialized_only=True))


def drop_connection() -> None:
    """Close this thread's connection, dead or alive; the next statement opens a new one."""
    with contextlib.suppress(DatabaseError, InterfaceError):
        connection.close()


def session() -> object:
    """The session behind this thread's connection, None if it is not open or broken; the same object while it lives."""
    inner = connection.connection
    return None if inner is None or inner.closed or inner.broken else inner
