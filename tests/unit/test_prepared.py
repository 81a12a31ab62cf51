"""Prepared statements: the session keeps them; where it turns out to be another's, all goes on without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import DataError

from scheduler_project.lib import prepared
from scheduler_project.lib.sql import run_prepared
from scheduler_project.lib.statements import Call, Statement, text_array

pytestmark = pytest.mark.django_db(transaction=True)

ECHO = Statement("echo_all", "select %(values)s::text[], %(number)s::int, '100%%' like '%%\\%%', %(number)s::int + 1")
HOSTILE = ["'", "\\", "'); drop table jobs; --", "%(number)s", "%s", "$1", "\n", "🎈", None]


@pytest.fixture(autouse=True)
def _own_session(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(prepared, "_is_given_up", False)
    connection.close()
    yield
    connection.close()


def echo(number: int) -> list[list[Any]]:
    return run_prepared([Call(ECHO, {"values": text_array(HOSTILE), "number": number})])


def names() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("select name from pg_prepared_statements order by name")
        return [name for (name,) in cursor.fetchall()]


def test_values_arrive_as_they_were_given_and_the_statement_is_prepared_once() -> None:
    answers = [echo(number) for number in range(8)]

    assert answers == [[[(HOSTILE, number, True, number + 1)]] for number in range(8)]
    [name] = names()
    assert name.startswith("echo_all_")


def test_statements_of_the_same_name_and_another_text_are_two() -> None:
    other = Statement("echo_all", "select %(number)s::int * 2")

    echo(1)

    assert run_prepared([Call(other, {"number": 21})]) == [[(42,)]]
    assert len(names()) == 2


def test_a_new_session_prepares_anew() -> None:
    echo(1)
    connection.close()

    assert echo(2)[0][0][1] == 2
    assert len(names()) == 1
    assert not prepared._is_given_up


def test_a_session_that_lost_them_is_used_without_from_then_on() -> None:
    echo(1)
    with connection.cursor() as cursor:
        cursor.execute("deallocate all")

    assert echo(2)[0][0][1] == 2
    assert echo(3)[0][0][1] == 3
    assert names() == []


def test_a_session_in_which_another_has_prepared_them_is_used_without() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"prepare {prepared._name_of(ECHO)} as select 'of another'")

    assert echo(2)[0][0][1] == 2
    assert prepared._is_given_up


def test_nothing_is_prepared_in_a_transaction_of_the_caller_or_behind_a_pooler(settings: Any) -> None:
    with transaction.atomic():
        assert echo(1)[0][0][1] == 1
    settings.IS_POOLED = True

    assert echo(2)[0][0][1] == 2
    assert names() == []


def test_any_other_error_is_the_callers() -> None:
    fail = Statement("fail_always", "select 1 / %(zero)s::int")

    for _ in range(2):
        with pytest.raises(DataError, match="division by zero"):
            run_prepared([Call(fail, {"zero": 0})])

    assert not prepared._is_given_up
    assert echo(3)[0][0][1] == 3
