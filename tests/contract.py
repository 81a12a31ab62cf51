"""Holds every answer of the API against the schema: the status is described, and the body is of that very shape."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any

from django.urls import Resolver404, resolve
from jsonschema import Draft202012Validator

from scheduler_project.lib.rest.schema import document

#: These say themselves that they have more fields than are named.
OPEN = {"Reason"}


def check_answer(method: str, path: str, answer: Any) -> None:
    """Fail if the answer is not one that the schema tells of. Paths and methods that do not exist are let through."""
    try:
        route = resolve(f"/api/{path.partition('?')[0]}").route
    except (Resolver404, ValueError):
        return
    template = "/" + re.sub(r"<uuid:(\w+)>", r"{\1}", route)
    operation = document()["paths"].get(template, {}).get(method.lower())
    if operation is None:
        return
    described = operation["responses"].get(str(answer.status_code))
    assert described is not None, f"{method} {template} answers {answer.status_code}, which its schema does not tell"
    if "content" not in described:
        assert not answer.content, f"{method} {template} {answer.status_code}: a body that its schema does not tell"
        return
    if answer.status_code == 304:
        return
    for error in _validator(template, method.lower(), str(answer.status_code)).iter_errors(answer.json()):
        place = ".".join(map(str, error.absolute_path))
        raise AssertionError(f"{method} {template} {answer.status_code}: {place}: {error.message}")


@cache
def _validator(template: str, method: str, status: str) -> Draft202012Validator:
    described = document()["paths"][template][method]["responses"][status]
    shape = described["content"]["application/json"]["schema"]
    return Draft202012Validator({**shape, "components": {"schemas": _closed()}})


@cache
def _closed() -> dict[str, Any]:
    """The shapes, without room for fields that they do not name: in an answer such a field was forgotten."""
    schemas = copy.deepcopy(document()["components"]["schemas"])
    for name, schema in schemas.items():
        if schema.get("type") == "object" and "properties" in schema and name not in OPEN:
            schema["additionalProperties"] = False
    return dict(schemas)
