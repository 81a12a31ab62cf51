"""Statements that the server's session keeps parsed and planned: for those that a process sends all the time.

They are prepared in SQL, so that several still go in one simple query. A session may turn out to be another one after
each transaction, behind a pooler nobody told of; then what was prepared is not there, and the process prepares no more.
"""

from __future__ import annotations

import re
import weakref
import zlib
from collections.abc import Sequence
from functools import lru_cache

from django.conf import settings
from django.db import connection
from psycopg.errors import DuplicatePreparedStatement, InvalidSqlStatementName

from scheduler_project.lib import logs
from scheduler_project.lib.statements import Call, Statement

log = logs.get(__name__)

_PARAMETER = re.compile(r"%\((\w+)\)s|%%")
#: The names that each session knows.
_known: weakref.WeakKeyDictionary[object, set[str]] = weakref.WeakKeyDictionary()
_is_given_up = False


def may_prepare() -> bool:
    """Does a session outlive its transaction, and is there none under way?"""
    return not (settings.IS_POOLED or _is_given_up or connection.in_atomic_block)


def prepare(statements: Sequence[Statement]) -> None:
    """Make these statements known to this thread's session, those that are not."""
    connection.ensure_connection()
    known = _known.setdefault(connection.connection, set())
    new = [statement for statement in dict.fromkeys(statements) if _name_of(statement) not in known]
    if new:
        with connection.cursor() as cursor:
            cursor.execute(";\n".join(_numbered(statement) for statement in new))
        known.update(_name_of(statement) for statement in new)


def execution(call: Call) -> Call:
    """The call of a prepared statement: its values by their place."""
    return Call(_execution_of(call.statement), call.params)


def is_not_there(error: Exception) -> bool:
    """Was a prepared statement lost, or another's met? Then the session is not ours alone: this was the last time."""
    global _is_given_up
    if not isinstance(error.__cause__, InvalidSqlStatementName | DuplicatePreparedStatement):
        return False
    _is_given_up = True
    log.warning("statements_not_prepared", reason="the session changes between transactions: is there a pooler?")
    return True


@lru_cache(maxsize=256)
def _name_of(statement: Statement) -> str:
    return f"{statement.name}_{zlib.crc32(statement.text.encode()):08x}"


@lru_cache(maxsize=256)
def _parameters_of(statement: Statement) -> list[str]:
    return list(dict.fromkeys(name for name in _PARAMETER.findall(statement.text) if name))


def _numbered(statement: Statement) -> str:
    places = {name: f"${place}" for place, name in enumerate(_parameters_of(statement), start=1)}
    return f"prepare {_name_of(statement)} as " + _PARAMETER.sub(
        lambda found: places[found[1]] if found[1] else "%", statement.text
    )


@lru_cache(maxsize=256)
def _execution_of(statement: Statement) -> Statement:
    values = ", ".join(f"%({name})s" for name in _parameters_of(statement))
    return Statement(statement.name, f"execute {_name_of(statement)}" + (f" ({values})" if values else ""))
