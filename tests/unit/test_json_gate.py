"""The gate for JSON: what it refuses names itself, what it lets through PostgreSQL gives back the same."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_project.lib.json_gate import MAX_BYTES, MAX_DEPTH, Unstorable, depth, encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**60), 10**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def complaint(value: Any) -> str:
    with pytest.raises(Unstorable) as caught:
        encode(value)
    return str(caught.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks_are_named(number: float) -> None:
    assert "NaN or Infinity" in complaint({"x": [number]})


def test_a_nan_as_a_key_is_refused_too() -> None:
    assert complaint({float("nan"): 1})


@pytest.mark.parametrize("value", [{"a": "x\0y"}, {"\0": 1}, ["\\\0"], "\0"])
def test_nul_is_named_wherever_it_stands(value: Any) -> None:
    assert "U+0000" in complaint(value)


@pytest.mark.parametrize("value", ["\\u0000", "\\\\u0000", {"\\u0000": "C:\\u0000"}])
def test_a_backslash_before_u0000_is_plain_text(value: Any) -> None:
    assert json.loads(encode(value)) == value


@pytest.mark.parametrize("value", ["\ud83d", {"k": "a\udc00"}, {"\ud800": 1}])
def test_half_a_surrogate_pair_is_named(value: Any) -> None:
    assert "surrogate" in complaint(value)


@pytest.mark.parametrize(
    "value", [{1, 2}, b"bytes", object(), datetime.now(UTC), uuid4(), Decimal(1), {"x": {"y": {3}}}, {(1, 2): 3}]
)
def test_what_is_not_json_is_named(value: Any) -> None:
    assert complaint(value).startswith("is not JSON")


def test_a_circle_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)

    assert complaint(circle)


def test_too_many_bytes_are_counted_as_bytes_not_as_characters() -> None:
    fits = "ä" * ((MAX_BYTES - 2) // 2)

    assert encode(fits)
    assert f"{MAX_BYTES:,}" in complaint(fits + "ä")


def test_depth_up_to_the_limit_passes_and_one_more_is_named() -> None:
    assert encode(nested(MAX_DEPTH))
    assert f"deeper than {MAX_DEPTH}" in complaint(nested(MAX_DEPTH + 1))
    assert f"deeper than {MAX_DEPTH}" in complaint(nested(100_000))


def test_many_brackets_side_by_side_or_in_text_are_not_depth() -> None:
    assert encode([[] for _ in range(1_000)])
    assert encode("[{" * 1_000)


def test_depth_counts_what_is_inside_of_each_other() -> None:
    assert [depth(v) for v in (1, [], {"a": 1}, [[1], {"a": [2]}], ({"a": ()},))] == [0, 1, 1, 3, 3]


def test_integers_keep_every_digit() -> None:
    assert encode({"id": 12345678901234567890123}) == '{"id":12345678901234567890123}'


def test_integers_that_python_itself_will_not_print_are_refused() -> None:
    assert complaint(10**5_000)


def test_text_beyond_ascii_stays_as_it_is() -> None:
    assert encode({"ä": "日本 🎈"}) == '{"ä":"日本 🎈"}'


def test_kinds_of_dict_and_list_are_taken_as_such() -> None:
    assert encode(OrderedDict(a=(1, 2))) == '{"a":[1,2]}'


@pytest.mark.django_db
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON)
def test_whatever_passes_the_gate_jsonb_gives_back_the_same(value: Any) -> None:
    try:
        text = encode(value)
    except Unstorable:
        return

    with connection.cursor() as cursor:
        cursor.execute("select %s::jsonb::text", [text])
        stored = cursor.fetchone()[0]

    assert exactly(stored) == exactly(text)


def exactly(text: str) -> Any:
    """Numbers as what they say: 1e2 is 100, and no digit is lost."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)
