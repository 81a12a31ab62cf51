"""What a validator's error means in words. Never shows the value: it may be a secret, or a megabyte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

Path = tuple[str | int, ...]
_NAMES = {
    "null": "null", "boolean": "true or false", "integer": "a whole number", "number": "a number", "string": "a string",
    "array": "a list", "object": "an object",
}  # fmt: skip
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"), (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (dict, "object"),
    (list, "array"),
)  # fmt: skip
MAX_SHOWN = 200


def told(error: Any) -> list[tuple[Path, str]]:
    """(path, message) of an error of jsonschema; several where it stands for several."""
    path: Path = tuple(error.absolute_path)
    word = error.validator
    if word in ("anyOf", "oneOf"):
        return _of_branches(error, path)
    if word == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return [((*path, name), "is required") for name in missing]
    if word == "additionalProperties" and isinstance(error.instance, dict):
        return _unknown_names(error, path)
    say = _WORDS.get(word)
    if say is None:
        return [(path, f"does not fit the schema ({word})" if word else "is not allowed")]
    return [(path, say(error.validator_value, error.instance))]


def _of_branches(error: Any, path: Path) -> list[tuple[Path, str]]:
    """If only one branch is meant for a value of this kind, then what is wrong there; else that none fits."""
    branches: dict[int, list[Any]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    meant = [errors for errors in branches.values() if not any(_is_of_kind(inner) for inner in errors)]
    if len(meant) == 1:
        return [found for inner in meant[0] for found in told(inner)]
    kinds = [inner.validator_value for errors in branches.values() for inner in errors if _is_of_kind(inner)]
    if branches and not meant and len(kinds) == len(branches):
        wanted = [kind for given in kinds for kind in ([given] if isinstance(given, str) else given)]
        return [(path, _type(wanted, error.instance))]
    return [(path, "fits none of the allowed forms" if branches else "fits more than one of the forms")]


def _is_of_kind(inner: Any) -> bool:
    return inner.validator == "type" and not inner.relative_path


def _unknown_names(error: Any, path: Path) -> list[tuple[Path, str]]:
    known = sorted(error.schema.get("properties", {}))
    if error.schema.get("patternProperties"):
        return [(path, "has names that are not allowed")]
    text = f"is not known; known: {_cut(', '.join(known)) or 'none'}"
    return [((*path, str(name)[:100]), text) for name in error.instance if name not in known][:10]


def _type(wanted: str | Iterable[str], instance: Any) -> str:
    names = [wanted] if isinstance(wanted, str) else list(dict.fromkeys(wanted))
    kind = next(name for types, name in _KINDS if isinstance(instance, types))
    if names == ["integer"] and kind == "number":
        return "must be a whole number"
    return f"must be {' or '.join(_NAMES[name] for name in names)}, not {_NAMES[kind]}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _json(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


_WORDS: dict[str, Callable[[Any, Any], str]] = {
    "type": _type,
    "enum": lambda wanted, _: f"must be one of {_cut(', '.join(map(_json, wanted)))}",
    "const": lambda wanted, _: f"must be {_json(wanted)}",
    "minimum": lambda wanted, _: f"must be at least {wanted}",
    "maximum": lambda wanted, _: f"must be at most {wanted}",
    "exclusiveMinimum": lambda wanted, _: f"must be more than {wanted}",
    "exclusiveMaximum": lambda wanted, _: f"must be less than {wanted}",
    "multipleOf": lambda wanted, _: f"must be a multiple of {wanted}",
    "minLength": lambda wanted, _: f"must have at least {wanted} characters",
    "maxLength": lambda wanted, _: f"must have at most {wanted} characters",
    "pattern": lambda wanted, _: f"must match {_json(wanted)}",
    "format": lambda wanted, _: f"is not of the form {wanted}",
    "minItems": lambda wanted, _: f"must have at least {wanted} items",
    "maxItems": lambda wanted, _: f"must have at most {wanted} items",
    "items": lambda _, __: "has more items than are allowed",
    "uniqueItems": lambda _, __: "repeats an item",
    "contains": lambda _, __: "lacks an item of the wanted form",
    "minProperties": lambda wanted, _: f"must have at least {wanted} properties",
    "maxProperties": lambda wanted, _: f"must have at most {wanted} properties",
    "dependentRequired": lambda _, __: "lacks a property that another one needs",
    "unevaluatedProperties": lambda _, __: "has properties that are not known",
    "unevaluatedItems": lambda _, __: "has more items than are allowed",
    "not": lambda _, __: "is of a form that is not allowed",
}
