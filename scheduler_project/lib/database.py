"""Is the database there, and is it ours as the code expects it?"""

from __future__ import annotations

from collections.abc import Collection

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

_is_migrated = False


def find_problem() -> str | None:
    """Why the database can not be worked with now, None if it can.

    Migrations are compared until they were complete once: they are not taken back under a running process.
    """
    global _is_migrated
    try:
        connection.ensure_connection()
        if not connection.is_usable():
            connection.close()
            return "the database does not answer"
        if not _is_migrated:
            executor = MigrationExecutor(connection)
            pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
            if pending:
                return f"{len(pending)} migrations are not applied: run manage.py migrate"
            _is_migrated = True
    except DatabaseError as error:
        connection.close()
        return f"the database can not be reached ({type(error).__name__})"
    return None


def find_connection_problem() -> str | None:
    """What the database says when it can not be reached; None if it can."""
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        connection.close()
        return str(error).strip().partition("\n")[0]
    return None


def pending_migrations() -> list[str]:
    """Migrations of this code that the database lacks, as app.name; also one whose successors are there."""
    loader = MigrationExecutor(connection).loader
    return [".".join(key) for key in sorted(loader.graph.nodes) if key not in loader.applied_migrations]


def unknown_migrations(apps: Collection[str]) -> list[str]:
    """Migrations of these apps that the database has and this code does not know."""
    loader = MigrationExecutor(connection).loader
    replaced = {key for step in loader.disk_migrations.values() for key in step.replaces}
    known = set(loader.disk_migrations) | replaced
    return sorted(".".join(key) for key in loader.applied_migrations if key[0] in apps and key not in known)


def drop_broken_connection() -> None:
    """Close this thread's connection if it is no longer usable; the next statement opens a new one."""
    connection.close_if_unusable_or_obsolete()


def release_connection() -> None:
    """Close this thread's connection while it waits for something else; not inside a transaction, which would end."""
    if not connection.in_atomic_block:
        connection.close()
