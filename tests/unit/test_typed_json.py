"""Python's types as schemas, and values as the types say."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict
from uuid import UUID

import pytest

from scheduler_project.lib.json_schema import CompiledSchema
from scheduler_project.lib.typed_json import BadType, Field, Secret, build, dataclass_of, parameters_of, schema_of

SOME_ID = "01890a5d-ac96-774b-bcce-b302099a8057"


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Item:
    url: Annotated[str, Field(format="uri", max_length=2_000)]
    count: Annotated[int, Field(ge=1, le=9)] = 1


@dataclass
class Order:
    items: list[Item]
    at: datetime
    key: Annotated[str, Secret]
    colour: Colour = Colour.RED
    tags: dict[str, int] = field(default_factory=dict)
    box: tuple[int, str] | None = None


class Mail(TypedDict):
    to: str
    cc: NotRequired[list[str]]


@dataclass
class Holds:
    itself: list[Holds]


@dataclass
class Unsayable:
    what: complex


def test_a_dataclass_becomes_a_schema():
    schema = schema_of(Order)

    assert schema["required"] == ["items", "at", "key"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["items"]["items"]["properties"] == {
        "url": {"type": "string", "format": "uri", "maxLength": 2_000},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
    }
    assert schema["properties"]["key"] == {"type": "string", "x-secret": True}
    assert schema["properties"]["colour"] == {"enum": ["red", "blue"], "default": "red"}
    CompiledSchema(schema)


@pytest.mark.parametrize(
    ("kind", "value", "built"),
    [
        (str, "a", "a"),
        (int, 3.0, 3),
        (float, 3, 3.0),
        (Any, {"a": [1]}, {"a": [1]}),
        (datetime, "2026-03-28t12:00:00z", datetime(2026, 3, 28, 12, tzinfo=UTC)),
        (date, "2026-03-28", date(2026, 3, 28)),
        (UUID, SOME_ID, UUID(SOME_ID)),
        (Optional[int], None, None),  # noqa: UP045 - the old spelling is meant
        (int | str, "a", "a"),
        (Item | Mail, {"to": "a"}, {"to": "a"}),
        (Literal["a", 1], 1, 1),
        (Colour, "blue", Colour.BLUE),
        (list[UUID], [SOME_ID], [UUID(SOME_ID)]),
        (dict[str, date], {"a": "2026-03-28"}, {"a": date(2026, 3, 28)}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2], (1, 2)),
        (Mail, {"to": "a", "cc": ["b"]}, {"to": "a", "cc": ["b"]}),
        (Item, {"url": "https://a.example"}, Item("https://a.example")),
        (list[Item] | None, [{"url": "https://a.example", "count": 2}], [Item("https://a.example", 2)]),
    ],
)
def test_values_become_what_the_type_says(kind, value, built):
    assert CompiledSchema(schema_of(kind)).problems(value) == []

    found = build(kind, value)

    assert found == built
    assert type(found) is type(built)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, "1"), (str, None), (bool, 1), (datetime, "yesterday"), (UUID, "x"), (Literal["a"], "b"),
        (Colour, "green"),
        (tuple[int, str], [1]), (tuple[int, str], [1, "a", 2]), (Mail, {}), (Mail, {"to": "a", "bcc": []}),
        (Item, {"url": "https://a.example", "count": 10}), (dict[str, int], {"a": "b"}),
    ],
)  # fmt: skip
def test_other_values_do_not_fit(kind, value):
    assert CompiledSchema(schema_of(kind)).problems(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [(complex, "no form in JSON"), (Unsayable, "complex"), (dict[int, str], "names of a JSON object are texts"),
     (Holds, "holds itself"), (set[int], "no form in JSON"), (Literal[b"x"], "no plain JSON value")],
)  # fmt: skip
def test_types_without_a_form_in_json_are_refused(kind, text):
    with pytest.raises(BadType, match=text):
        schema_of(kind)


def test_bounds_of_other_libraries_are_understood():
    class Ge:
        ge = 1

    assert schema_of(Annotated[int, Ge(), "how many"]) == {
        "type": "integer", "minimum": 1, "description": "how many",
    }  # fmt: skip


def test_a_functions_parameters_are_a_payload():
    def send(ctx: object, to: str, *, copies: int = 1, tags: list[str] = []) -> None: ...  # noqa: B006 - is meant

    made = dataclass_of(send, parameters_of(send))

    assert schema_of(made)["required"] == ["to"]
    assert vars(build(made, {"to": "a", "copies": 2})) == {"to": "a", "copies": 2, "tags": []}


def test_parameters_that_have_no_name_in_the_payload_are_refused():
    def send(ctx: object, *rest: str) -> None: ...

    with pytest.raises(BadType, match="can not be filled"):
        dataclass_of(send, parameters_of(send))
