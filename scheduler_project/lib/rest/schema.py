"""OpenAPI 3.1, made from what the views' methods say of themselves. Overrides inner parts of drf-spectacular, which is
pinned to one version for that.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

from scheduler_project.lib.rest.describe import Description, ErrorOutput, description_of
from scheduler_project.lib.rest.errors import code_of, envelope
from scheduler_project.lib.rest.fields import Input
from scheduler_project.lib.rest.samples import sample_of

VERBS = {"GET": "get", "POST": "create", "PATCH": "update", "PUT": "replace", "DELETE": "delete"}
SECURITY: list[dict[str, list[str]]] = [{"bearer": []}, {"apiKey": []}]
#: For everything; writes have the second ones too.
ERRORS, ERRORS_OF_WRITES = (400, 401, 403, 404, 406, 429, 500, 503), (409, 413, 415)
STALE = 412
_SAID_BY_STATUS = {
    400: "The request is malformed, or a field is wrong; details name the fields.",
    401: "No valid credentials.",
    403: "Not allowed for this role or key.",
    404: "It does not exist, or not for this caller.",
    406: "Only application/json is offered.",
    409: "The state it is in does not allow this.",
    412: "It was changed since If-Match was read.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    429: "Too many requests; Retry-After says when to come back.",
    500: "A fault of ours; the request id names it in our logs.",
    503: "The database can not be reached; try again after Retry-After.",
}


class Schema(AutoSchema):
    """Describes one operation."""

    @property
    def said(self) -> Description:
        """What the method says of itself. LookupError: nothing, which is a fault."""
        said = description_of(self.view, self.method)
        if said is None:
            raise LookupError(f"{type(self.view).__name__}.{self.method.lower()} lacks @describe")
        return said

    def get_operation_id(self) -> str:
        """``jobs_create``, ``jobs_list``, ``jobs_get``, ``jobs_cancel``."""
        parts = self._parts()
        name = "_".join(part.replace("-", "_") for part in parts if not part.startswith("{"))
        if parts[-1].startswith("{"):
            return f"{name}_{VERBS[self.method]}"
        is_collection = len(parts) == 1 or sum(hasattr(self.view, verb.lower()) for verb in VERBS) > 1
        if not is_collection:
            return name
        return f"{name}_{'list' if self.method == 'GET' else VERBS[self.method]}"

    def _parts(self) -> list[str]:
        return self.path.removeprefix("/api/").split("/")

    def get_tags(self) -> list[str]:
        """The first part of the path."""
        return [self._parts()[0]]

    def get_summary(self) -> str:
        """The first line of the method's docstring, or the operation's name in words."""
        text = getattr(self.view, self.method.lower()).__doc__ or ""
        return text.strip().partition("\n")[0] or self.get_operation_id().replace("_", " ").capitalize()

    def get_description(self) -> str:  # type: ignore[override]
        """The rest of the method's docstring."""
        text = getattr(self.view, self.method.lower()).__doc__ or ""
        return " ".join(text.strip().partition("\n")[2].split())

    def get_auth(self) -> list[dict[str, Any]]:
        """Nothing for what is public."""
        return SECURITY if self.view.authentication_classes else []

    def get_request_serializer(self) -> Any:
        """The body's shape."""
        return self.said.body

    def get_override_parameters(self) -> list[Any]:
        """The query string's shape, and headers with a meaning."""
        headers = [OpenApiParameter(n, str, "header", description=text) for n, text in self.said.headers.items()]
        query = self.said.query
        return [*([query] if query is not None and query().fields else []), *headers]

    def get_response_serializers(self) -> Any:
        """The good answers and all errors this operation may give."""
        good = {status: _answer(status, shape) for status, shape in self.said.answers.items()}
        errors = [*ERRORS, *(() if self.method == "GET" else ERRORS_OF_WRITES)]
        if "If-Match" in self.said.headers:
            errors.append(STALE)
        return {**good, **{status: _error(status) for status in sorted(errors)}}

    def get_examples(self) -> list[OpenApiExample]:
        """A body; answers bring theirs along."""
        said = self.said
        if said.body is None:
            return []
        value = said.example or sample_of(said.body(), only_required=not said.is_patch)
        return [OpenApiExample("body", value, request_only=True)]

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        """``Job`` for JobOutput; inputs keep their full names."""
        return type(serializer).__name__.removesuffix("Output")

    def _map_serializer_field(self, field: Any, direction: str, *args: Any, **kwargs: Any) -> Any:
        own = getattr(field, "json_schema", None)
        if own is not None:
            return dict(own)
        return super()._map_serializer_field(field, direction, *args, **kwargs)  # type: ignore[no-untyped-call]

    def _postprocess_serializer_schema(self, schema: Any, serializer: Any, direction: str) -> Any:
        schema = super()._postprocess_serializer_schema(schema, serializer, direction)  # type: ignore[no-untyped-call]
        if not type(serializer).__dict__.get("__doc__"):
            schema.pop("description", None)  # it would be a base class's
        if isinstance(serializer, Input):
            schema["additionalProperties"] = False
        else:
            for field in schema.get("properties", {}).values():
                field.pop("minLength", None)  # what we answer may well be empty
        return schema

    def _get_response_headers_for_code(self, status_code: str, direction: str = "response") -> dict[str, Any]:
        headers = {"X-Request-Id": _header("Names this request in our logs.")}
        if status_code in ("429", "503"):
            headers["Retry-After"] = _header("Seconds until it is worth trying again.")
        return headers


def _header(text: str) -> dict[str, Any]:
    return {"schema": {"type": "string"}, "description": text}


def _answer(status: int, shape: Any) -> OpenApiResponse:
    if shape is None:
        return OpenApiResponse(description="Done; no body.")
    examples = [OpenApiExample("answer", sample_of(shape()), status_codes=[str(status)], response_only=True)]
    return OpenApiResponse(shape, description="Done.", examples=examples)


def _error(status: int) -> OpenApiResponse:
    value = envelope("validation_error" if status == 400 else code_of(status), _SAID_BY_STATUS[status])
    examples = [OpenApiExample("error", value, status_codes=[str(status)], response_only=True)]
    return OpenApiResponse(ErrorOutput, description=_SAID_BY_STATUS[status], examples=examples)


@cache
def document() -> dict[str, Any]:
    """The whole schema. RuntimeError if a part of it could not be described."""
    GENERATOR_STATS.reset()
    with GENERATOR_STATS.silence():
        generator: Any = SchemaGenerator  # has no types
        found: dict[str, Any] = generator().get_schema(request=None, public=True)
    problems = [*GENERATOR_STATS._error_cache, *GENERATOR_STATS._warn_cache]
    if problems:
        raise RuntimeError("; ".join(map(str, problems)))
    return found


def as_text() -> str:
    """The schema as it is served and committed: stable, so that two of them can be compared."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
