"""JSON Schema 2020-12, compiled once and checked within bounds; what is wrong is told by path, never by value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import islice
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, SchemaError, ValidationError, validators
from referencing import Registry
from referencing.exceptions import Unresolvable

from scheduler_project.lib.formats import CHECKER, FORMATS
from scheduler_project.lib.json_problems import Path, told

DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: Applications of one keyword to one value; about a second of work at most. A schema that branches at each level of a
#: deep value would else take longer than anybody waits.
MOST_STEPS = 100_000
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_left: ContextVar[list[int] | None] = ContextVar("steps_left", default=None)


class BadSchema(ValueError):
    """A schema that can not be used; the message says where and why."""


class Problem(NamedTuple):
    """One thing that is wrong with a value, and where in it: ``("items", 3, "url")``."""

    path: Path
    message: str


class _TooMuch(Exception):
    """The value takes more steps than are allowed."""


class CompiledSchema:
    """A schema that has been checked, and its validator."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Check a schema; refuses what is not 2020-12, references to elsewhere and formats that are not checked.

        Raises:
            BadSchema: with the place in the schema.
        """
        self.schema = schema
        _refuse(schema)
        self._validator = _Validator(schema, registry=Registry(), format_checker=CHECKER)
        samples: tuple[Any, ...] = (None, True, 0, "", [], {})
        for sample in samples:
            self._try(sample)

    def problems(self, value: Any, *, most: int = 10) -> list[Problem]:
        """The first things that are wrong with a value, in the order of the schema; none if it fits."""
        token = _left.set([MOST_STEPS])
        try:
            found = [problem for error in islice(self._validator.iter_errors(value), most) for problem in told(error)]
        except _TooMuch:
            return [Problem((), f"takes more than {MOST_STEPS:,} steps to be checked; split it")]
        except RecursionError:
            return [Problem((), "is nested too deeply to be checked")]
        finally:
            _left.reset(token)
        return [Problem(path, message) for path, message in dict.fromkeys(found)][:most]

    def _try(self, sample: Any) -> None:
        """References are followed only when they are met: meet them now."""
        token = _left.set([MOST_STEPS])
        try:
            list(self._validator.iter_errors(sample))
        except (_TooMuch, RecursionError):
            raise BadSchema("the schema refers to itself without end") from None
        except Unresolvable as error:
            raise BadSchema(f"the reference {getattr(error, 'ref', '')!r} leads nowhere") from None
        finally:
            _left.reset(token)


def path_text(root: str, path: Path) -> str:
    """A path as people read it: ``payload.items[3].url``; names that are no plain words stand in quotes."""
    text = root
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_NAME.fullmatch(part):
            text += f".{part}"
        else:
            text += f"[{json.dumps(part[:100], ensure_ascii=False)}]"
    return text


# -- what is refused as a schema ---------------------------------------------------------------------------------
def _refuse(schema: Mapping[str, Any]) -> None:
    if not isinstance(schema, Mapping):
        raise BadSchema("a schema is an object")
    try:
        json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadSchema(f"the schema is not JSON: {error}") from None
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadSchema(f"{path_text('schema', tuple(error.absolute_path))}: {error.message[:200]}") from None
    for path, inner in _subschemas(schema, ()):
        _refuse_words(path_text("schema", path), inner, schema)


def _refuse_words(place: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> None:
    if schema.get("$schema", DIALECT).rstrip("#") != DIALECT:
        raise BadSchema(f"{place}.$schema: only {DIALECT} is understood")
    for word in ("$ref", "$dynamicRef"):
        reference = schema.get(word)
        if reference is None:
            continue
        if not reference.startswith("#"):
            raise BadSchema(f"{place}.{word}: only references inside the schema (#…) are followed")
        try:
            Registry().resolver_with_root(_resource(root)).lookup(reference)
        except Unresolvable:
            raise BadSchema(f"{place}.{word}: {reference!r} leads nowhere") from None
    if (form := schema.get("format")) is not None and form not in FORMATS:
        raise BadSchema(f"{place}.format: {form!r} is not checked here; known are {', '.join(sorted(FORMATS))}")
    for pattern in [schema.get("pattern"), *schema.get("patternProperties", ())]:
        _refuse_pattern(place, pattern)


def _resource(root: Mapping[str, Any]) -> Any:
    from referencing.jsonschema import DRAFT202012

    return DRAFT202012.create_resource({name: inner for name, inner in root.items() if name != "$id"})


def _refuse_pattern(place: str, pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise BadSchema(f"{place}: the pattern {pattern!r} is no regular expression: {error}") from None


_OF_NAMES = ("properties", "patternProperties", "$defs", "dependentSchemas")
_OF_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_OF_ONE = (
    "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "not",
    "if", "then", "else",
)  # fmt: skip


def _subschemas(schema: Any, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if not isinstance(schema, Mapping):
        return  # true or false
    yield path, schema
    for word in _OF_ONE:
        yield from _subschemas(schema.get(word), (*path, word))
    for word in _OF_LISTS:
        for index, inner in enumerate(schema.get(word, ())):
            yield from _subschemas(inner, (*path, word, index))
    for word in _OF_NAMES:
        for name, inner in schema.get(word, {}).items():
            yield from _subschemas(inner, (*path, word, name))


# -- the validator: jsonschema's, counted -------------------------------------------------------------------------
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


def _counted(keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError] | None:
        left = _left.get()
        if left is not None:
            left[0] -= 1
            if left[0] < 0:
                raise _TooMuch
        return keyword(validator, value, instance, schema)

    return check


def _unique(_validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """By hashes: the library compares each item with each other where they can not be sorted."""
    if wanted and isinstance(instance, list) and not _is_unique(instance):
        yield ValidationError("repeats an item")


def _is_unique(items: Sequence[Any]) -> bool:
    return len({json.dumps(_plain(item), sort_keys=True) for item in items}) == len(items)


def _plain(value: Any) -> Any:
    """1 and 1.0 are the same number in JSON."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


_KEYWORDS = {**Draft202012Validator.VALIDATORS, "uniqueItems": _unique}
_Validator: Any = validators.extend(Draft202012Validator, {word: _counted(check) for word, check in _KEYWORDS.items()})
