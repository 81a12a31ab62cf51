"""Runs statements through Django's connection: the only user of a cursor in the product.

Several statements may go in one round trip. They are sent as one simple query, which PostgreSQL runs as one
transaction in which each statement sees what was committed before *it* began. The claim's limit rests on that:
lock in the first statement, count in the second (ADR 0005).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from scheduler_project.lib.statements import Call, Statement

Row = tuple[Any, ...]
_NOW = Statement("now", "select clock_timestamp()")


def run(statement: Statement, params: Mapping[str, object]) -> list[Row]:
    """Run one statement; the rows it returns, none if it returns nothing."""
    return run_together([Call(statement, params)])[0]


def run_together(calls: Sequence[Call]) -> list[list[Row]]:
    """Run several statements in one round trip and one transaction; the rows of each, in order."""
    with connection.cursor() as cursor:
        cursor.execute(";\n".join([cursor.mogrify(call.statement.text, call.params) for call in calls]))
        answers = [_rows(cursor)]
        while cursor.nextset():
            answers.append(_rows(cursor))
    return answers


def database_now() -> datetime:
    """The database's clock, which decides what is due."""
    now: datetime = run(_NOW, {})[0][0]
    return now


def in_transaction() -> bool:
    """Does the caller hold a transaction open?"""
    return connection.in_atomic_block


def _rows(cursor: Any) -> list[Row]:
    return cursor.fetchall() if cursor.description else []
