"""Pure: what a new schema takes away from those who were written against the old one. Additions are no loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Doc = Mapping[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete")


def losses(old: Doc, new: Doc) -> list[str]:
    """Each change that could break a client, in words; empty if all are additive."""
    found: list[str] = []
    for path, item in old.get("paths", {}).items():
        for method in _METHODS:
            if method in item:
                name = f"{method.upper()} {path}"
                then, now = item[method], new.get("paths", {}).get(path, {}).get(method)
                found += (
                    [f"{name}: is gone"] if now is None else [f"{name}: {loss}" for loss in _of(then, now, old, new)]
                )
    return found


def _of(then: Doc, now: Doc, old: Doc, new: Doc) -> Iterator[str]:
    if then["operationId"] != now["operationId"]:
        yield f"operationId is {now['operationId']}, was {then['operationId']}"
    yield from _parameters(then, now)
    for status in then["responses"]:
        if status not in now["responses"]:
            yield f"the answer {status} is gone"
            continue
        before, after = _shape(then["responses"][status]), _shape(now["responses"][status])
        yield from Comparison(old, new, is_answer=True).losses(before, after, f"answer {status}")
    before, after = _shape(then.get("requestBody", {})), _shape(now.get("requestBody", {}))
    yield from Comparison(old, new, is_answer=False).losses(before, after, "body")


def _parameters(then: Doc, now: Doc) -> Iterator[str]:
    before = {(p["in"], p["name"]): p for p in then.get("parameters", [])}
    after = {(p["in"], p["name"]): p for p in now.get("parameters", [])}
    yield from (f"parameter {name} is gone" for place, name in before if (place, name) not in after)
    for key, parameter in after.items():
        if parameter.get("required") and not before.get(key, {}).get("required"):
            yield f"parameter {key[1]} is needed"


def _shape(described: Doc) -> Doc:
    shape: Doc = described.get("content", {}).get("application/json", {}).get("schema", {})
    return shape


class Comparison:
    """Compares shapes of the two documents; what is compared once is not compared again inside itself."""

    def __init__(self, old: Doc, new: Doc, *, is_answer: bool) -> None:
        self._old, self._new, self._is_answer = old, new, is_answer
        self._seen: set[tuple[str, str]] = set()

    def losses(self, old: Doc, new: Doc, at: str) -> Iterator[str]:
        """What the new shape lacks."""
        pair = (old.get("$ref", ""), new.get("$ref", ""))
        if all(pair):
            if pair in self._seen:
                return
            self._seen.add(pair)
        old, new = _resolved(self._old, old), _resolved(self._new, new)
        yield from self._types(old, new, at)
        yield from self._enums(old, new, at)
        yield from self._properties(old, new, at)
        if "items" in old and "items" in new:
            yield from self.losses(old["items"], new["items"], f"{at}[]")

    def _types(self, old: Doc, new: Doc, at: str) -> Iterator[str]:
        before, after = _types_of(old), _types_of(new)
        unknown = after - before if self._is_answer else before - after
        if before and after and unknown:
            yield f"{at}: {'may be' if self._is_answer else 'may no longer be'} {', '.join(sorted(unknown))}"

    def _enums(self, old: Doc, new: Doc, at: str) -> Iterator[str]:
        gone = set(map(str, old.get("enum", []))) - set(map(str, new.get("enum", [])))
        if "enum" in new and gone and not self._is_answer:
            yield f"{at}: may no longer be {', '.join(sorted(gone))}"

    def _properties(self, old: Doc, new: Doc, at: str) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        yield from (f"{at}.{name} is gone" for name in before if name not in after)
        needed_before, needed_now = set(old.get("required", [])), set(new.get("required", []))
        if self._is_answer:
            yield from (f"{at}.{name} may be missing" for name in sorted((needed_before & after.keys()) - needed_now))
        else:
            yield from (f"{at}.{name} is needed" for name in sorted(needed_now - needed_before))
        for name, shape in before.items():
            if name in after:
                yield from self.losses(shape, after[name], f"{at}.{name}")


def _resolved(document: Doc, shape: Doc) -> Doc:
    while "$ref" in shape:
        shape = document["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    return shape


def _types_of(shape: Doc) -> set[str]:
    said = shape.get("type", [])
    return {said} if isinstance(said, str) else set(said)
