"""Strict input: each field takes one JSON type, the parser one JSON object."""

from __future__ import annotations

import io
import json
import math
from types import MappingProxyType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import APIException, ValidationError

from scheduler_project.lib.errors import ValidationFailed
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.rest import fields as f
from scheduler_project.lib.rest.errors import envelope, exception_handler
from scheduler_project.lib.rest.paging import Window
from scheduler_project.lib.rest.parsing import StrictJSONParser
from scheduler_project.lib.text import clean_name

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
FIELDS = [
    f.Text(),
    f.Email(),
    f.Choice(choices=["a", "b"]),
    f.Whole(min_value=0, max_value=9),
    f.Digits(min_value=0, max_value=9),
    f.Number(min_value=0, max_value=9),
    f.Bool(),
    f.Flag(),
    f.Id(),
    f.Moment(),
]


def _parse(raw: bytes):
    return StrictJSONParser().parse(io.BytesIO(raw))


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_every_object_comes_through_as_it_was(value):
    assert _parse(json.dumps(value).encode()) == value


def _status_of(function) -> int:
    try:
        function()
    except APIException as error:
        return error.status_code
    return 200


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(raw):
    assert _status_of(lambda: _parse(raw)) in {200, 400}


@given(st.text(alphabet='{}[]":,0123456789eE+-.truefalsn\\u ', max_size=60))
def test_no_text_like_json_breaks_the_parser(text):
    assert _status_of(lambda: _parse(text.encode())) in {200, 400}


def test_long_integers_stay_exact_and_longer_ones_are_refused():
    assert _parse(b'{"x": ' + b"9" * 4_300 + b"}") == {"x": 10**4_300 - 1}
    with pytest.raises(APIException, match="digits"):
        _parse(b'{"x": ' + b"9" * 4_301 + b"}")


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: type(field).__name__)
@given(value=JSON)
def test_no_value_breaks_a_field(field, value):
    assert _status_of(lambda: field.run_validation(value)) in {200, 400}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: type(field).__name__)
def test_no_nesting_breaks_a_field(field):
    value: object = 1
    for _ in range(120):
        value = [value]
    with pytest.raises(ValidationError):
        field.run_validation(value)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (f.Whole(min_value=-5, max_value=9), [0, -5, 9], [True, "1", 1.0, None, 10, 2**70, math.nan, "\u0663", []]),
        (
            f.Digits(min_value=0, max_value=99),
            ["0", "07", "99"],
            [5, "", "-1", "1.0", "1e1", "\u0663", " 1", "1_0", "9" * 5_000],
        ),
        (f.Number(min_value=0, max_value=9), [0, 1.5], [True, "1", math.nan, math.inf, 10**400, None]),
        (f.Bool(), [True, False], [0, 1, "true", None, "", []]),
        (f.Flag(), ["true", "false"], ["True", "1", "", True, None, "yes"]),
        (f.Text(), ["a", " a "], [5, True, None, [], {}, "", "a\0", "\ud800"]),
        (f.Choice(choices=["a"]), ["a"], ["b", 1, True, None, ["a"], {"a": 1}]),
    ],
    ids=["Whole", "Digits", "Number", "Bool", "Flag", "Text", "Choice"],
)
def test_fields_take_their_own_type_alone(field, good, bad):
    for value in good:
        field.run_validation(value)
    for value in bad:
        with pytest.raises(ValidationError):
            field.run_validation(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-24T18:30:00Z", "2026-12-24T18:30:00+00:00"),
        ("2026-12-24t18:30:00z", "2026-12-24T18:30:00+00:00"),
        ("2026-12-24 18:30:00.123456789+02:00", "2026-12-24T16:30:00.123456+00:00"),
        ("2026-12-24T18:30:00.5-00:00", "2026-12-24T18:30:00.500000+00:00"),
    ],
)
def test_times_come_out_in_utc(text, expected):
    assert f.Moment().run_validation(text).isoformat() == expected


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-24",
        "20261224T183000Z",
        "2026-W52-4T18:30:00Z",
        "2026-12-24T18:30Z",
        "2026-12-24T24:30:00Z",
        "2026-12-24T18:30:60Z",
        "2026-12-24T18:30:00",
        "2026-12-24T18:30:00+25:00",
        "2026-12-24T18:30:00Z ",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "now",
        "",
    ],
)
def test_other_spellings_of_times_are_refused(text):
    with pytest.raises(ValidationError):
        f.Moment().run_validation(text)


class _Inner(f.Input):
    run_at = f.Moment()


class _Outer(f.Input):
    jobs = _Inner(many=True)


def test_errors_are_named_by_their_path():
    shape = _Outer(data={"jobs": [{"run_at": "2026-12-24T18:30:00Z"}, {"run_at": 5, "x": 1}, 7], "y": 1})
    assert not shape.is_valid()

    body = exception_handler(ValidationError(shape.errors), {}).data

    assert [detail["field"] for detail in body["details"]] == ["jobs[1].run_at", "jobs[1].x", "jobs[2]", "y"]


def test_what_echoes_the_input_can_always_be_sent():
    body = envelope("bad_request", "\ud800" * 5_000, [])

    assert len(json.dumps(body, ensure_ascii=False).encode()) < 2_000


def test_a_page_knows_whether_there_is_another():
    window = Window(limit=2, offset=4)

    assert window.rows == slice(4, 7)
    rows = [SimpleNamespace(id=uuid7()) for _ in range(3)]
    first = window.page(rows, lambda row: {"id": row.id})
    assert (first["next_offset"], len(first["items"])) == (6, 2)
    assert first["next_cursor"]
    assert window.page([1, 2], lambda n: {"n": n}) == {
        "items": [{"n": 1}, {"n": 2}],
        "limit": 2,
        "offset": 4,
        "next_offset": None,
        "next_cursor": None,
    }


def test_names_have_one_spelling():
    assert clean_name("  cafe\u0301 ", "name", 10) == "caf\u00e9"
    for bad in ("", " ", "x" * 11, "a\0", "a\u200b", "a\u202eb", "\ud800", "a\nb", "a/b"):
        with pytest.raises(ValidationFailed):
            clean_name(bad, "name", 10, forbidden="/")


class _Shape(f.Input):
    needed = f.Whole(min_value=0, max_value=9)
    optional = f.Text(required=False)
    constant = f.Text(default="x")
    made = f.AnyJson(default=dict, allow_null=True)
    doubled = f.Whole(min_value=0, max_value=9, default=1)

    def validate_doubled(self, value):
        return value * 2


def test_what_is_not_sent_is_what_the_shape_says_and_new_each_time():
    shape = _Shape(data={"needed": 1})
    shape.is_valid(raise_exception=True)
    again = _Shape(data={"needed": 1})
    again.is_valid(raise_exception=True)

    assert shape.validated_data == {"needed": 1, "constant": "x", "made": {}, "doubled": 2}
    assert shape.validated_data["made"] is not again.validated_data["made"]


@given(st.dictionaries(st.sampled_from(["needed", "optional", "constant", "made", "doubled"]), JSON))
def test_the_short_way_finds_what_the_long_way_finds(body):
    def found(data):
        shape = _Shape(data=data)
        return shape.is_valid(), shape.validated_data, shape.errors

    assert found(body) == found(MappingProxyType(body))


def test_a_change_takes_only_what_is_sent():
    shape = _Shape(data={"constant": "y"}, partial=True)
    shape.is_valid(raise_exception=True)

    assert shape.validated_data == {"constant": "y"}
