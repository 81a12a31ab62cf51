"""Databases of the embedded PostgreSQL: made by the superuser, owned by the plain role."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler_project.lib.embedded.cluster import PORT, ROLE, SUPERUSER
from scheduler_project.lib.embedded.errors import EmbeddedPostgresError, no_space

if TYPE_CHECKING:
    import psycopg

_CAN_MEASURE = """
select exists (select from pg_available_extensions where name = 'pg_stat_statements')
   and current_setting('shared_preload_libraries') like '%pg_stat_statements%'
"""


def create_database(name: str, socket_dir: Path) -> None:
    """Make the database unless it is there, with statement statistics where the server has them.

    Safe to run at once in several processes.
    """
    import psycopg  # here, so that settings can import this package before anything else is installed

    try:
        with _connection("postgres", socket_dir) as connection:
            _make(connection, name)
        with _connection(name, socket_dir) as connection:
            _add_statement_statistics(connection)
    except psycopg.errors.DiskFull as error:
        raise no_space(socket_dir.parent) from error
    except psycopg.Error as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EmbeddedPostgresError(f"Can not create the database {name}: {first_line}") from error


def _connection(database: str, socket_dir: Path) -> psycopg.Connection:
    import psycopg

    return psycopg.connect(host=str(socket_dir), port=PORT, user=SUPERUSER, dbname=database, autocommit=True)


def _make(connection: psycopg.Connection, name: str) -> None:
    from psycopg import errors, sql

    if connection.execute("select from pg_database where datname = %s", [name]).fetchone() is not None:
        return
    statement = sql.SQL("create database {} owner {}").format(sql.Identifier(name), sql.Identifier(ROLE))
    # Another process may be quicker; which of the two errors it is depends on how far it has come.
    with contextlib.suppress(errors.DuplicateDatabase, errors.UniqueViolation):
        connection.execute(statement)


def _add_statement_statistics(connection: psycopg.Connection) -> None:
    from psycopg import errors

    row = connection.execute(_CAN_MEASURE).fetchone()
    if row and row[0]:
        with contextlib.suppress(errors.DuplicateObject, errors.UniqueViolation):
            connection.execute("create extension if not exists pg_stat_statements")
