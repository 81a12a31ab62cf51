"""Python's types as JSON Schema, and JSON values as what the types say: texts become times, objects dataclasses."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache, partial
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

from scheduler_project.lib.json_schema import CompiledSchema

Schema = dict[str, Any]


class BadType(TypeError):
    """A type that has no form in JSON here; the message says which and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What a type alone does not say; stands in ``Annotated[int, Field(ge=1)]``.

    Attributes:
        is_secret: sealed at rest and masked wherever it is shown.
        more: further words of JSON Schema.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    description: str | None = None
    is_secret: bool = False
    more: Mapping[str, Any] | None = None


#: ``Annotated[str, Secret]`` for short.
Secret = Field(is_secret=True)

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    UUID: {"type": "string", "format": "uuid"},
    Any: {},
    object: {},
    list: {"type": "array"},
    dict: {"type": "object"},
    tuple: {"type": "array"},
}
_BUILD: dict[Any, Callable[[Any], Any]] = {
    int: int,
    float: float,
    datetime: lambda text: datetime.fromisoformat(text.upper()),
    date: date.fromisoformat,
    UUID: UUID,
    tuple: tuple,
}
_ALLOWED = (
    "str, int, float, bool, None, Any, datetime, date, UUID, Literal, Enum, list, dict, tuple, Union, Optional, "
    "dataclasses, TypedDict and Annotated"
)


def schema_of(kind: Any) -> Schema:
    """The JSON Schema of a type.

    Raises:
        BadType: naming the part of the type that can not be said.
    """
    return _schema(kind, ())


def build(kind: Any, value: Any) -> Any:
    """A value that fits the type's schema, as the type says. What it is not sure of it leaves as it is."""
    if kind in _BUILD:
        return _BUILD[kind](value)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return build(args[0], value)
    if origin in (Union, types.UnionType):
        return _one_of(args, value)
    if origin is Literal:
        return next(allowed for allowed in args if allowed == value and type(allowed) is type(value))
    if origin in (list, dict, tuple):
        return _collection(origin, args, value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if dataclasses.is_dataclass(kind) or is_typeddict(kind):
        return _object(kind, value)
    return value


# -- to schemas --------------------------------------------------------------------------------------------------
def _schema(kind: Any, around: tuple[Any, ...]) -> Schema:
    if kind is Any or (isinstance(kind, type | types.NoneType) and kind in _PLAIN):
        return dict(_PLAIN[kind])
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(args[0], args[1:], around)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(arg, around) for arg in args]}
    if origin is Literal:
        return {"enum": [_json_value(value) for value in args]}
    if origin in (list, dict, tuple):
        return _collection_schema(kind, origin, args, around)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [_json_value(member.value) for member in kind]}
    if dataclasses.is_dataclass(kind) or is_typeddict(kind):
        return _object_schema(kind, around)
    raise BadType(f"{kind!r} has no form in JSON; allowed are {_ALLOWED}")


def _json_value(value: Any) -> Any:
    if isinstance(value, str | int | float | types.NoneType):
        return value
    raise BadType(f"{value!r} in a Literal or Enum is no plain JSON value")


def _annotated(kind: Any, notes: tuple[Any, ...], around: tuple[Any, ...]) -> Schema:
    schema = _schema(kind, around)
    for note in notes:
        schema.update(_words(note, is_list=schema.get("type") == "array"))
    return schema


def _words(note: Any, *, is_list: bool) -> Schema:
    """The words of a note; those of other libraries are understood where their attributes have the same names."""
    length = "Items" if is_list else "Length"
    names = {
        "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
        "multiple_of": "multipleOf", "min_length": f"min{length}", "max_length": f"max{length}", "pattern": "pattern",
        "format": "format", "description": "description",
    }  # fmt: skip
    if isinstance(note, str):
        return {"description": note}
    found = {word: getattr(note, name, None) for name, word in names.items()}
    words = {word: value for word, value in found.items() if isinstance(value, str | int | float)}
    if isinstance(note, Field):
        words.update({"x-secret": True} if note.is_secret else {})
        words.update(note.more or {})
    return words


def _collection_schema(kind: Any, origin: Any, args: tuple[Any, ...], around: tuple[Any, ...]) -> Schema:
    if origin is list:
        return {"type": "array", "items": _schema(args[0], around)}
    if origin is dict:
        if args[0] is not str:
            raise BadType(f"{kind!r}: the names of a JSON object are texts; take dict[str, …]")
        return {"type": "object", "additionalProperties": _schema(args[1], around)}
    if len(args) == 2 and args[1] is Ellipsis:
        return {"type": "array", "items": _schema(args[0], around)}
    each = [_schema(arg, around) for arg in args]
    return {"type": "array", "prefixItems": each, "items": False, "minItems": len(each)}


def _object_schema(kind: Any, around: tuple[Any, ...]) -> Schema:
    if kind in around:
        raise BadType(f"{kind.__qualname__} holds itself; give a JSON schema instead")
    hints = _hints(kind)
    inner = (*around, kind)
    if is_typeddict(kind):
        properties = {name: _schema(_unwrapped(hint), inner) for name, hint in hints.items()}
        required = [name for name, hint in hints.items() if _must_be_there(kind, name, hint)]
    else:
        fields = [field for field in dataclasses.fields(kind) if field.init]
        properties = {field.name: _with_default(_schema(hints[field.name], inner), field.default) for field in fields}
        required = [field.name for field in fields if _is_required(field)]
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _unwrapped(hint: Any) -> Any:
    """Without Required and NotRequired."""
    return get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint


def _must_be_there(kind: Any, name: str, hint: Any) -> bool:
    # The class itself does not know, where its module keeps annotations as texts.
    origin = get_origin(hint)
    return origin is Required or (origin is not NotRequired and name in kind.__required_keys__)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _with_default(schema: Schema, default: Any) -> Schema:
    if isinstance(default, Enum):
        default = default.value
    is_shown = isinstance(default, str | int | float | bool | types.NoneType) and not schema.get("x-secret")
    return {**schema, "default": default} if is_shown else schema


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise BadType(f"{kind.__qualname__}: {error}; its types must be known in its module") from None


# -- from values -------------------------------------------------------------------------------------------------
def _collection(origin: Any, args: tuple[Any, ...], value: Any) -> Any:
    if origin is list:
        return [build(args[0], inner) for inner in value]
    if origin is dict:
        return {name: build(args[1], inner) for name, inner in value.items()}
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(build(args[0], inner) for inner in value)
    return tuple(build(arg, inner) for arg, inner in zip(args, value, strict=True))


def _object(kind: Any, value: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    built = {name: build(_unwrapped(hints[name]), inner) for name, inner in value.items()}
    return built if is_typeddict(kind) else kind(**built)


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        if not _compiled(kind).problems(value, most=1):
            return build(kind, value)
    return value


@cache
def _compiled(kind: Any) -> CompiledSchema:
    return CompiledSchema(schema_of(kind))


# -- functions ---------------------------------------------------------------------------------------------------
def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function behind its first one; none if Python can not tell."""
    try:
        return list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return []


def dataclass_of(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> type:
    """A dataclass whose fields are these parameters.

    Raises:
        BadType: a parameter can not be filled by name, or has a type that can not be said in JSON.
    """
    hints = _parameter_hints(function, parameters)
    fields: list[Any] = []
    for parameter in parameters:
        if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            raise BadType(f"the parameter {parameter} can not be filled from an object's names")
        fields.append((parameter.name, hints.get(parameter.name, Any), _field_of(parameter.default)))
    made = dataclasses.make_dataclass("Payload", fields, kw_only=True)
    made.__module__ = function.__module__
    return made


def _parameter_hints(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> dict[str, Any]:
    """Of these alone: what stands at the context, or behind the arrow, need not be known when this runs."""
    named = {p.name: p.annotation for p in parameters if p.annotation is not inspect.Parameter.empty}
    holder = types.SimpleNamespace(__annotations__=named)
    try:
        return get_type_hints(holder, getattr(function, "__globals__", {}), include_extras=True)
    except NameError as error:
        raise BadType(f"{error}; the types of its parameters must be known in its module") from None


def _field_of(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return dataclasses.field()
    if default.__class__.__hash__ is None:  # a list or the like, which a dataclass does not take as a default
        return dataclasses.field(default_factory=partial(copy.copy, default))
    return dataclasses.field(default=default)
