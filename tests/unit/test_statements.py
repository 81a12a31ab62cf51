"""Array literals and statements: hostile text arrives in PostgreSQL exactly as it was given."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scheduler_project.lib.sql import run, run_together
from scheduler_project.lib.statements import Call, Statement, load, plain_array, text_array, varying

HOSTILE = [
    "", " ", "NULL", "null", '"', "\\", "\\\\", "{", "}", "{}", ",", "a,b", "'", "''", "';--", "$$", "$1", "%s",
    "%(x)s", "%%", "\n", "\r\n", "\t", ";", "/* */", "--", "E'\\x'", "日本", "🎈", "\u202e", "\ufeff", "é", "e\u0301",
    "\x01",
]  # fmt: skip
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
ECHO = Statement("echo", "select %(values)s::text[]")
property_test = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.django_db
@property_test
@given(st.lists(st.none() | TEXT, max_size=8))
@example(HOSTILE)
@example([])
@example([None, "NULL", None])
def test_texts_come_back_exactly_as_they_were_given(values: list[str | None]) -> None:
    [[answer]] = run(ECHO, {"values": text_array(values)})

    assert answer == values


@pytest.mark.django_db
@property_test
@given(TEXT, TEXT)
@example("'); drop table jobs; --", "%s")
@example("\\'", "\\")
def test_a_parameter_never_ends_its_statement(one: str, two: str) -> None:
    statement = Statement("two", "select %(one)s::text, %(two)s::text")

    answers = run_together([Call(statement, {"one": one, "two": two}), Call(statement, {"one": two, "two": one})])

    assert answers == [[(one, two)], [(two, one)]]


@pytest.mark.django_db
@property_test
@given(st.lists(st.none() | st.floats(allow_nan=False) | st.integers(-(2**40), 2**40), max_size=8))
def test_numbers_come_back_exactly(values: list[float | None]) -> None:
    [[answer]] = run(Statement("echo", "select %(values)s::float8[]"), {"values": plain_array(values)})

    assert answer == values


@pytest.mark.parametrize(
    ("values", "usual", "sent"),
    [([None, None], None, []), ([0, 0.0], 0, []), ([0, 1], 0, [0, 1]), (["", "a"], "", ["", "a"]), ([], None, []),
     ([None, "a"], None, [None, "a"]), ([False, False], False, []), (["a", "a"], None, ["a", "a"])],
)  # fmt: skip
def test_a_column_of_one_usual_value_is_not_sent(values: list[object], usual: object, sent: list[object]) -> None:
    assert list(varying(values, usual)) == sent


@pytest.mark.django_db
def test_answers_stand_in_the_order_of_the_statements_and_may_be_empty() -> None:
    one = Statement("one", "select 1 union all select 2 order by 1")
    none = Statement("none", "select 3 where false")
    silent = Statement("silent", "set local work_mem = '4MB'")

    answers = run_together([Call(one, {}), Call(silent, {}), Call(none, {}), Call(one, {})])

    assert answers == [[(1,), (2,)], [], [], [(1,), (2,)]]


@pytest.mark.django_db(transaction=True)
def test_statements_sent_together_are_one_transaction() -> None:
    make = Statement("make", "create table test_together (x int)")
    fail = Statement("fail", "select 1 / 0")

    with pytest.raises(Exception, match="division by zero"):
        run_together([Call(make, {}), Call(fail, {})])

    with connection.cursor() as cursor:
        cursor.execute("select to_regclass('test_together')")
        assert cursor.fetchone() == (None,)


def test_a_loaded_statement_has_its_name_in_place_of_its_head(tmp_path: Path) -> None:
    (tmp_path / "pick.sql").write_text("-- pick.sql: 100 of them\n-- params   none\nselect 1 -- one\n  from x;\n")

    assert load(tmp_path, "pick") == Statement("pick", "/* pick */ select 1 -- one\n  from x")


def test_a_part_can_be_left_out_and_only_one_that_is_there() -> None:
    statement = Statement("x", "/* x */ select 1\n-- part more\n, 2\n-- end of more\nfrom t")

    assert statement.without("more").text == "/* x */ select 1\nfrom t"
    with pytest.raises(ValueError, match="0 parts"):
        statement.without("less")
