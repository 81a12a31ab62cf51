"""ETags: a reader asks only for news, a writer only changes what he has seen.

A tag has two parts: what people set, and what the system adds (depths, next runs). ``If-None-Match`` compares both;
``If-Match`` only the first, or no change could be made while a queue is at work.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_project.lib.errors import Conflict, FieldError

_CHARS = 16
IF_MATCH = "If-Match"
#: For @describe.
IF_MATCH_HEADER = {IF_MATCH: "The ETag that was read: 412 if it has been changed since."}
IF_NONE_MATCH_HEADER = {"If-None-Match": "An ETag that is known: 304 if it still holds."}


class Stale(Conflict):
    """The object is no longer what the caller has seen."""

    status = 412


def tagged(shown: Mapping[str, Any], *, settings: Mapping[str, Any] | None = None, status: int = 200) -> Response:
    """An answer with its tag. ``settings`` is the part of it that people set; all of it unless told."""
    return Response(shown, status=status, headers={"ETag": _tag(shown, settings)})


def unless_known(request: Request, shown: Mapping[str, Any], *, settings: Mapping[str, Any] | None = None) -> Response:
    """The answer to a GET: 304 if the caller's ``If-None-Match`` names what it would be."""
    tag = _tag(shown, settings)
    known = [part.strip() for part in request.headers.get("If-None-Match", "").split(",")]
    if tag in known or "*" in known:
        return Response(status=304, headers={"ETag": tag})
    return Response(shown, headers={"ETag": tag})


def refuse_if_changed(request: Request, settings: Mapping[str, Any]) -> None:
    """Stale if the caller's ``If-Match`` names other settings than these; without the header anything goes.

    Call it while the row is locked.
    """
    given = request.headers.get(IF_MATCH)
    if given is None or given.strip() == "*":
        return
    now = _digest(settings)
    if any(part.strip().removeprefix("W/").strip('"').partition(".")[0] == now for part in given.split(",")):
        return
    details = [FieldError(name, f"is now {json.dumps(value, default=str)}") for name, value in settings.items()]
    raise Stale("It was changed since you read it; read it again.", details)


def _tag(shown: Mapping[str, Any], settings: Mapping[str, Any] | None) -> str:
    return f'W/"{_digest(shown if settings is None else settings)}.{_digest(shown)}"'


def _digest(shown: Mapping[str, Any]) -> str:
    text = json.dumps(shown, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_CHARS]
