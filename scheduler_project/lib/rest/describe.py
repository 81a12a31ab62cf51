"""What a view's method takes and answers, said once: the schema shows it, and reading by another shape is a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from rest_framework import serializers
from rest_framework.request import Request

from scheduler_project.lib.rest.fields import Input

F = TypeVar("F", bound=Callable[..., Any])
Output = type[serializers.BaseSerializer[Any]]
_NAME = "described"


@dataclass(frozen=True, slots=True)
class Description:
    """One operation.

    Attributes:
        answers: the shape of each good answer by its status, None for one without a body.
        is_patch: only the fields that are sent count.
        headers: request headers with a meaning, by name.
        example: a body, where one made from the fields' names would not do.
    """

    answers: Mapping[int, Output | None]
    body: type[Input] | None = None
    query: type[Input] | None = None
    is_patch: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    example: Mapping[str, Any] | None = None


def describe(
    answers: Mapping[int, Output | None],
    *,
    body: type[Input] | None = None,
    patch: type[Input] | None = None,
    query: type[Input] | None = None,
    headers: Mapping[str, str] | None = None,
    example: Mapping[str, Any] | None = None,
) -> Callable[[F], F]:
    """Say what a method of a view takes and answers; its docstring's first line is the operation's summary."""
    said = Description(answers, body or patch, query, patch is not None, headers or {}, example)

    def mark(method: F) -> F:
        setattr(method, _NAME, said)
        return method

    return mark


def description_of(view: object, method: str) -> Description | None:
    """What was said of a view's method."""
    said: Description | None = getattr(getattr(view, method.lower(), None), _NAME, None)
    return said


def check_said(request: Request, *, body: type[Input] | None = None, query: type[Input] | None = None) -> None:
    """Fail if the running method reads by another shape than it was said to: the schema would lie."""
    view = request.parser_context.get("view") if request.parser_context else None
    said = description_of(view, request.method or "")
    if said is None:
        return
    if (body is not None and said.body is not body) or (query is not None and said.query is not query):
        raise TypeError(f"{type(view).__name__}.{request.method}: reads by a shape that its @describe does not name")


@cache
def page_of(item: type[serializers.Serializer[Any]]) -> Output:
    """The shape of a list's page."""
    fields = {
        "items": item(many=True),
        "limit": serializers.IntegerField(),
        "offset": serializers.IntegerField(),
        "next_offset": serializers.IntegerField(allow_null=True),
        "next_cursor": serializers.CharField(allow_null=True),
    }
    return type(f"{item.__name__.removesuffix('Output')}Page", (serializers.Serializer,), fields)


class ErrorDetailOutput(serializers.Serializer[Any]):
    """What is wrong with one field."""

    field = serializers.CharField(help_text="The field's path, such as jobs[3].run_at.")
    message = serializers.CharField()


class ErrorOutput(serializers.Serializer[Any]):
    """Every answer from status 400 on."""

    error = serializers.ChoiceField(
        choices=[
            "bad_request", "unauthorized", "forbidden", "not_found", "conflict", "validation_error",
            "too_many_requests", "internal_error",
        ]
    )  # fmt: skip
    message = serializers.CharField()
    details = ErrorDetailOutput(many=True)
