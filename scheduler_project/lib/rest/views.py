"""The base of every REST view, and how a view gets at its input."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.views import APIView

from scheduler_project.lib.rest.fields import Input


class ApiView(APIView):
    """One resource shape. Errors leave it in the envelope; OPTIONS tells nothing."""

    metadata_class = None


def read_body(request: Request, shape: type[Input]) -> dict[str, Any]:
    """The checked fields of a body; ValidationError names every field that is wrong."""
    return _checked(shape, request.data if isinstance(request.data, dict) else {})


def read_query(request: Request, shape: type[Input]) -> dict[str, Any]:
    """The checked parameters of the query string; unknown and repeated ones are refused."""
    given: QueryDict = request.query_params
    repeated = [name for name, values in given.lists() if len(values) > 1]
    if repeated:
        raise ValidationError({name: ["is given more than once"] for name in repeated})
    return _checked(shape, given.dict())


def _checked(shape: type[Input], data: Any) -> dict[str, Any]:
    serializer = shape(data=data)
    serializer.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer.validated_data
    return checked
