"""The base of every REST view, and how a view gets at its input."""

from __future__ import annotations

import threading
from typing import Any

from django.http import QueryDict
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.views import APIView

from scheduler_project.lib.rest.describe import check_said
from scheduler_project.lib.rest.fields import Input
from scheduler_project.lib.rest.headers import headers_of
from scheduler_project.lib.rest.paging import NEWEST, Key, PageQuery, Window

_of_thread = threading.local()


class ApiView(APIView):
    """One resource shape. Errors leave it in the envelope; OPTIONS tells nothing.

    ``counted_field`` names a list of the body: each of its items counts against the limit for submitting.
    """

    metadata_class = None
    counted_field: str | None = None

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add the headers that were asked for on the way."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in headers_of(request).items():
            answer.headers.setdefault(name, value)
        return answer


def read_body(request: Request, shape: type[Input]) -> dict[str, Any]:
    """The checked fields of a body; ValidationError names every field that is wrong."""
    check_said(request, body=shape)
    return _checked(shape, request.data if isinstance(request.data, dict) else {})


def read_patch(request: Request, shape: type[Input]) -> dict[str, Any]:
    """The checked fields of a change: only those that were sent."""
    check_said(request, body=shape)
    serializer = shape(data=request.data if isinstance(request.data, dict) else {}, partial=True)
    serializer.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer.validated_data
    return checked


def read_page(
    request: Request, shape: type[PageQuery] = PageQuery, order: tuple[Key, ...] = NEWEST
) -> tuple[dict[str, Any], Window]:
    """The checked parameters of a list's query string, and the page of it they ask for."""
    query = read_query(request, shape)
    return query, Window.of(query, request.path, order)


def read_query(request: Request, shape: type[Input]) -> dict[str, Any]:
    """The checked parameters of the query string; unknown and repeated ones are refused."""
    check_said(request, query=shape)
    given: QueryDict = request.query_params
    repeated = [name for name, values in given.lists() if len(values) > 1]
    if repeated:
        raise ValidationError({name: ["is given more than once"] for name in repeated})
    return _checked(shape, given.dict())


def _checked(shape: type[Input], data: Any) -> dict[str, Any]:
    serializer = _serializer_of(shape)
    serializer.initial_data = data
    try:
        serializer.is_valid(raise_exception=True)
        checked: dict[str, Any] = serializer.validated_data
        return checked
    finally:
        for name in ("initial_data", "_validated_data", "_errors"):
            vars(serializer).pop(name, None)


def _serializer_of(shape: type[Input]) -> Any:
    """The serializer of this thread for a shape: to make one copies each field, which costs more than the check."""
    kept: dict[type[Input], Input] = vars(_of_thread).setdefault("serializers", {})
    if shape not in kept:
        kept[shape] = shape(data=None)
    return kept[shape]
