"""Headers that something on the way wants in the answer, whatever the answer will be. Imported by the settings."""

from __future__ import annotations

from collections.abc import Mapping

from rest_framework.request import Request

_NAME = "headers_to_add"


def add_header(request: Request, name: str, value: str) -> None:
    """Give the request's answer a header; said twice, the last one counts."""
    setattr(request, _NAME, {**headers_of(request), name: value})


def headers_of(request: Request) -> Mapping[str, str]:
    """The headers asked for so far."""
    headers: Mapping[str, str] = request.__dict__.get(_NAME, {})
    return headers
