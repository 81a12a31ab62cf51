"""Runs statements through Django's connection: the only user of a cursor in the product.

Several statements may go in one round trip. They are sent as one simple query, which PostgreSQL runs as one
transaction in which each statement sees what was committed before *it* began. The claim's limit rests on that:
lock in the first statement, count in the second (ADR 0005).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connection, connections
from psycopg.errors import DeadlockDetected

from scheduler_project.lib.prepared import execution, is_not_there, may_prepare, prepare
from scheduler_project.lib.replica import ALIAS, is_reading
from scheduler_project.lib.statements import Call, Statement

T = TypeVar("T")
Row = tuple[Any, ...]
_NOW = Statement("now", "select clock_timestamp()")
#: How often a transaction is tried that meets others head-on.
TRIES = 5


def run(statement: Statement, params: Mapping[str, object]) -> list[Row]:
    """Run one statement; the rows it returns, none if it returns nothing."""
    return _run_one(connection, statement, params)


def read(statement: Statement, params: Mapping[str, object]) -> list[Row]:
    """The same for one that only reads: under ``@from_replica`` the copy is asked, if there is one."""
    return _run_one(connections[ALIAS if is_reading() else DEFAULT_DB_ALIAS], statement, params)


def _run_one(database: Any, statement: Statement, params: Mapping[str, object]) -> list[Row]:
    values: Any = params
    with database.cursor() as cursor:
        cursor.execute(statement.text, values)
        return _rows(cursor)


def run_together(calls: Sequence[Call]) -> list[list[Row]]:
    """Run several statements in one round trip and one transaction; the rows of each, in order."""
    with connection.cursor() as cursor:
        cursor.execute(";\n".join([cursor.mogrify(call.statement.text, call.params) for call in calls]))
        answers = [_rows(cursor)]
        while cursor.nextset():
            answers.append(_rows(cursor))
    return answers


def run_prepared(calls: Sequence[Call]) -> list[list[Row]]:
    """``run_together`` for statements that are sent all the time: the session keeps them planned where it can."""
    if not may_prepare():
        return run_together(calls)
    try:
        prepare([call.statement for call in calls])
        return run_together([execution(call) for call in calls])
    except DatabaseError as error:
        if not is_not_there(error):
            raise
    return run_together(calls)  # nothing of the first try was written: all of it is one transaction


def database_now() -> datetime:
    """The database's clock, which decides what is due."""
    now: datetime = run(_NOW, {})[0][0]
    return now


def past_deadlocks(work: Callable[[], T]) -> T:
    """Do ``work``, a whole transaction, and do it again if it met another one head-on: the database has undone it.

    Inside of a caller's transaction it is done once: that one is broken then and must be done again as a whole.
    """
    for attempt in range(1, TRIES):
        try:
            return work()
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected) or connection.in_atomic_block:
                raise
            time.sleep(0.01 * attempt)
    return work()


def _rows(cursor: Any) -> list[Row]:
    # The driver makes a description anew for each look at it, with an object a column.
    return cursor.fetchall() if cursor.pgresult and cursor.pgresult.nfields else []
