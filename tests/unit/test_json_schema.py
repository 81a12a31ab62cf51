"""Schemas: what is refused as one, and how what is wrong with a value is told."""

from __future__ import annotations

import pytest

from scheduler_project.lib.json_schema import MOST_STEPS, BadSchema, CompiledSchema, path_text

SECRET = "hunter2-hunter2"


def told(schema, value):
    return [f"{path_text('payload', p.path)}: {p.message}" for p in CompiledSchema(schema).problems(value)]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ([], "a schema is an object"),
        ({"type": "strin"}, r"schema\.type"),
        ({"properties": {"a": {"minimum": "1"}}}, r"schema\.properties\.a\.minimum"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "only .*2020-12.* is understood"),
        ({"$ref": "https://example.com/schema.json"}, "only references inside the schema"),
        ({"$ref": "other.json#/a"}, "only references inside the schema"),
        ({"$id": "https://example.com/a", "properties": {"x": {"$ref": "b"}}}, r"schema\.properties\.x\.\$ref: only"),
        ({"$dynamicRef": "https://example.com/x"}, "only references inside the schema"),
        ({"$ref": "#/$defs/nope"}, "leads nowhere"),
        ({"anyOf": [{}, {"$ref": "#nope"}]}, r"schema\.anyOf\[1\]\.\$ref"),
        ({"$ref": "#"}, "refers to itself without end"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "without end"),
        ({"items": {"format": "postcode"}}, r"schema\.items\.format: 'postcode' is not checked here"),
        ({"patternProperties": {"(": {}}}, r"schema\.patternProperties|no regular expression"),
        ({"const": float("nan")}, "not JSON"),
        ({"enum": [object()]}, "not JSON"),
    ],
)
def test_a_bad_schema_is_refused_with_its_place(schema, text):
    with pytest.raises(BadSchema, match=text):
        CompiledSchema(schema)


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        ({"type": "integer"}, "x", ["payload: must be a whole number, not a string"]),
        ({"type": "integer"}, 1.5, ["payload: must be a whole number"]),
        ({"type": "integer"}, True, ["payload: must be a whole number, not true or false"]),
        ({"type": ["string", "null"]}, 1, ["payload: must be a string or null, not a whole number"]),
        ({"required": ["a", "b"]}, {"a": 1}, ["payload.b: is required"]),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b c": 1},
         ['payload["b c"]: is not known; known: a']),
        ({"properties": {"a": {"items": {"properties": {"url": {"format": "uri"}}}}}},
         {"a": [{}, {}, {}, {"url": "nowhere"}]}, ["payload.a[3].url: is not of the form uri"]),
        ({"enum": ["a", 1, None]}, "b", ['payload: must be one of "a", 1, null']),
        ({"const": {"a": 1}}, 2, ['payload: must be {"a": 1}']),
        ({"minimum": 1}, 0, ["payload: must be at least 1"]),
        ({"maximum": 1}, 2, ["payload: must be at most 1"]),
        ({"exclusiveMinimum": 1}, 1, ["payload: must be more than 1"]),
        ({"exclusiveMaximum": 1}, 1, ["payload: must be less than 1"]),
        ({"multipleOf": 2}, 3, ["payload: must be a multiple of 2"]),
        ({"minLength": 2}, "a", ["payload: must have at least 2 characters"]),
        ({"maxLength": 1}, "ab", ["payload: must have at most 1 characters"]),
        ({"pattern": "^a"}, "b", ['payload: must match "^a"']),
        ({"minItems": 1}, [], ["payload: must have at least 1 items"]),
        ({"maxItems": 1}, [1, 2], ["payload: must have at most 1 items"]),
        ({"prefixItems": [{}], "items": False}, [1, 2], ["payload: has more items than are allowed"]),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], ["payload: repeats an item"]),
        ({"contains": {"type": "string"}}, [1], ["payload: lacks an item of the wanted form"]),
        ({"minProperties": 1}, {}, ["payload: must have at least 1 properties"]),
        ({"maxProperties": 0}, {"a": 1}, ["payload: must have at most 0 properties"]),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ["payload: lacks a property that another one needs"]),
        ({"unevaluatedProperties": False}, {"a": 1}, ["payload: has properties that are not known"]),
        ({"not": {"type": "string"}}, "a", ["payload: is of a form that is not allowed"]),
        ({"properties": {"a": False}}, {"a": 1}, ["payload: is not allowed"]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x",
         ["payload: must be a whole number or null, not a string"]),
        ({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "null"}]}, {}, ["payload.a: is required"]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, ["payload: fits more than one of the forms"]),
        ({"anyOf": [{"minimum": 9}, {"maximum": 1}]}, 5, ["payload: fits none of the allowed forms"]),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, ["payload: must have at most 1 characters"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_path(schema, value, wanted):
    assert told(schema, value) == wanted


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("date-time", "2026-03-28T12:00:00.5+01:00", "2026-03-28T12:00:00"),
        ("date-time", "2026-03-28T12:00:00z", "2026-02-30T12:00:00Z"),
        ("date", "2026-03-28", "28.3.2026"),
        ("time", "12:00:00Z", "25:00:00"),
        ("uuid", "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5dac96774bbcceb302099a8057"),
        ("email", "ada@example.com", "ada at example.com"),
        ("uri", "https://example.com/a?b=c", "/a"),
        ("hostname", "a-1.example.com", "-a.example.com"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "::g"),
        ("regex", "^a+$", "("),
    ],
)
def test_formats_are_checked(form, good, bad):
    assert told({"format": form}, good) == []
    assert told({"format": form}, bad) == [f"payload: is not of the form {form}"]
    assert told({"format": form}, 7) == []


def test_messages_never_show_the_value():
    schemas = [
        {"type": "integer"}, {"enum": ["a"]}, {"const": 1}, {"maxLength": 1}, {"pattern": "^0$"}, {"format": "uuid"},
        {"not": {"type": "string"}}, {"anyOf": [{"type": "integer"}, {"maxLength": 1}]}, {"oneOf": [{"const": "x"}]},
        {"allOf": [{"type": "null"}]}, {"if": {"type": "string"}, "then": {"const": "y"}},
    ]  # fmt: skip
    for schema in schemas:
        found = told(schema, SECRET)
        assert found
        assert SECRET not in "".join(found)


def test_only_the_first_problems_are_told():
    assert len(told({"items": {"type": "string"}}, [1] * 100_000)) == 10


def test_the_cost_of_a_check_is_bounded():
    node = {"properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n", "x"]}
    branching = {"$defs": {"n": {"anyOf": [node, {**node, "required": ["n", "y"]}]}}, "$ref": "#/$defs/n"}
    deep: dict[str, object] = {}
    for _ in range(60):
        deep = {"n": deep}

    assert told(branching, deep) == [f"payload: takes more than {MOST_STEPS:,} steps to be checked; split it"]


def test_many_objects_are_compared_without_comparing_each_with_each():
    assert told({"uniqueItems": True}, [{"n": n} for n in range(100_000)]) == []


def test_a_recursive_schema_is_fine():
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}

    assert told(tree, {"kids": [{"kids": []}, {"kids": [{"kids": 1}]}]}) == [
        "payload.kids[1].kids[0].kids: must be a list, not a whole number"
    ]
