"""What a handler declares about its payload: the form it must have, and which parts of it are secret."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.handlers.base import BadPayload, JobContext
from scheduler_project.lib import sealed_json
from scheduler_project.lib.json_schema import BadSchema, CompiledSchema, Problem, path_text
from scheduler_project.lib.sealed_json import SecretPath
from scheduler_project.lib.typed_json import BadType, build, dataclass_of, parameters_of, schema_of

#: A JSON schema, a dataclass, a TypedDict or another type; None: as the function's parameters say, else anything.
Declared = Mapping[str, Any] | type | None
SecretFields = Sequence[str | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Payload:
    """The declaration, ready for use; ``schema`` is None if any payload will do."""

    schema: Mapping[str, Any] | None = None
    secrets: tuple[SecretPath, ...] = ()
    compiled: CompiledSchema | None = None

    def problems(self, value: Any) -> list[Problem]:
        """What is wrong with a payload, by path; the first ones."""
        return [] if self.compiled is None else self.compiled.problems(value)

    def sealed(self, value: Any) -> Any:
        """The payload as it is stored."""
        return sealed_json.seal(value, self.secrets)


ANYTHING = Payload()


def declare(
    function: Callable[..., Any], declared: Declared, secret_fields: SecretFields
) -> tuple[Payload, Callable[..., Any]]:
    """The payload's rule, and a function that takes a context alone.

    Raises:
        BadSchema, BadType: the declaration can not be used.
    """
    parameters = parameters_of(function)
    if isinstance(secret_fields, str):
        raise BadType("secret_fields is a list of names, not one text")
    if declared is None and not parameters:
        return _payload(None, secret_fields) if secret_fields else ANYTHING, function
    if isinstance(declared, Mapping):
        payload = _payload(declared, secret_fields)
        return payload, _with(function, payload, (lambda value: ((value,), {})) if parameters else _nothing)
    if declared is not None:
        payload = _payload(schema_of(declared), secret_fields)
        kind: Any = declared
        return payload, _with(function, payload, (lambda v: ((build(kind, v),), {})) if parameters else _nothing)
    made = dataclass_of(function, parameters)
    payload = _payload(schema_of(made), secret_fields)
    return payload, _with(function, payload, lambda value: ((), vars(build(made, value))))


Arguments = Callable[[Any], tuple[tuple[Any, ...], dict[str, Any]]]


def _nothing(_value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (), {}


def _with(function: Callable[..., Any], payload: Payload, arguments: Arguments) -> Callable[..., Any]:
    """The function with what it wants of the payload, once that has been checked in the worker too."""

    def of(ctx: JobContext) -> tuple[tuple[Any, ...], dict[str, Any]]:
        value = ctx.payload
        if found := payload.problems(value):
            raise BadPayload("; ".join(f"{path_text('payload', p.path)}: {p.message}" for p in found[:5]))
        return arguments(value)

    def run(ctx: JobContext) -> Any:
        args, named = of(ctx)
        return function(ctx, *args, **named)

    async def run_async(ctx: JobContext) -> Any:
        args, named = of(ctx)
        return await function(ctx, *args, **named)

    return functools.wraps(function)(run_async if inspect.iscoroutinefunction(function) else run)


def _payload(schema: Mapping[str, Any] | None, secret_fields: SecretFields) -> Payload:
    named = [_path(field) for field in secret_fields]
    marked = [] if schema is None else list(_marked(schema, schema, (), ()))
    secrets = tuple(dict.fromkeys([*named, *marked]))
    if () in secrets:
        raise BadSchema("the whole payload can not be a secret: name the fields")
    return Payload(schema, secrets, None if schema is None else CompiledSchema(schema))


def _path(field: str | tuple[str, ...]) -> SecretPath:
    path = tuple(field.split(".")) if isinstance(field, str) else tuple(field)
    if not all(isinstance(name, str) and name for name in path) or not path:
        raise BadSchema(
            f"secret field {field!r}: names with dots between them are needed, such as headers.Authorization"
        )
    return path


_MARKS = ("x-secret", "writeOnly")
_THROUGH_ONE = ("items", "contains", "unevaluatedItems", "if", "then", "else")
_THROUGH_LIST = ("prefixItems", "anyOf", "oneOf", "allOf")
_ANY_NAME = ("additionalProperties", "unevaluatedProperties")


def _marked(schema: Any, root: Mapping[str, Any], path: SecretPath, seen: tuple[str, ...]) -> Iterator[SecretPath]:
    """The places that a schema marks as secret."""
    if not isinstance(schema, Mapping):
        return
    if any(schema.get(mark) is True for mark in _MARKS):
        yield path
    for inner, below in _inner(schema):
        yield from _marked(inner, root, (*path, *below), seen)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/") and reference not in seen:
        yield from _marked(_looked_up(root, reference), root, path, (*seen, reference))


def _inner(schema: Mapping[str, Any]) -> Iterator[tuple[Any, SecretPath]]:
    for name, inner in schema.get("properties", {}).items():
        yield inner, (name,)
    for inner in [*schema.get("patternProperties", {}).values(), *(schema.get(word) for word in _ANY_NAME)]:
        yield inner, ("*",)
    for inner in [*(schema.get(word) for word in _THROUGH_ONE), *schema.get("dependentSchemas", {}).values()]:
        yield inner, ()
    for word in _THROUGH_LIST:
        for inner in schema.get(word, ()):
            yield inner, ()


def _looked_up(root: Any, reference: str) -> Any:
    for part in reference.removeprefix("#/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        root = root.get(name) if isinstance(root, Mapping) else None
    return root
