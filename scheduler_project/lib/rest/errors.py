"""The error shape: ``{"error": code, "message": text, "details": [{"field", "message"}]}``, whatever went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response

from scheduler_project.lib import logs
from scheduler_project.lib.errors import DomainError, FieldError

log = logs.get(__name__)

BAD_REQUEST, INTERNAL_ERROR, VALIDATION_ERROR = "bad_request", "internal_error", "validation_error"
#: Any other status below 500 is a bad request, any other from 500 on an internal error.
_CODES = {401: "unauthorized", 403: "forbidden", 404: "not_found", 409: "conflict", 429: "too_many_requests"}
_STATUSES = {code: status for status, code in _CODES.items()}
_OUTAGES = (OperationalError, InterfaceError)
BROKEN = "Something went wrong on our side; the request id names it in our logs."
DOWN = "The database can not be reached; try again in a moment."
RETRY_AFTER_S = 2
MAX_TEXT_CHARS = 1_000
MAX_DETAILS = 100
#: The field of errors that concern the input as a whole.
WHOLE = "body"


def code_of(status: int) -> str:
    """The specification's error code that goes with an HTTP status."""
    return _CODES.get(status, BAD_REQUEST if status < 500 else INTERNAL_ERROR)


def envelope(code: str, message: str, details: Sequence[FieldError] = ()) -> dict[str, Any]:
    """The body of an error answer; texts that echo the input are made fit to be sent."""
    shown = [{"field": _sendable(d.field), "message": _sendable(d.message)} for d in details[:MAX_DETAILS]]
    return {"error": code, "message": _sendable(message), "details": shown}


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """REST framework's hook: every exception of a view becomes an answer in the envelope, none shows a trace."""
    if isinstance(error, DomainError):
        return _answer(status_of(error), error.code, error.message, error.details)
    if isinstance(error, ValidationError):
        details = list(_flat(error.detail))
        message = "; ".join(f"{d.field}: {d.message}" for d in details[:3])
        return _answer(400, VALIDATION_ERROR, message, details)
    if isinstance(error, APIException):
        return _of_framework(error)
    if isinstance(error, Http404):
        return _answer(404, code_of(404), "Not found.")
    if isinstance(error, PermissionDenied):
        return _answer(403, code_of(403), "This is not allowed.")
    if isinstance(error, _OUTAGES):
        return unavailable(error)
    log.error("request_failed", path=_path(context), exc_info=error)
    return _logged(_answer(500, INTERNAL_ERROR, BROKEN))


def field_errors(error: ValidationError) -> list[FieldError]:
    """REST framework's nested errors as a flat list with the paths of the fields."""
    return list(_flat(error.detail))


def status_of(error: DomainError) -> int:
    """The HTTP status of an expected failure."""
    return error.status or _STATUSES.get(error.code, 400)


def unavailable(error: Exception) -> Response:
    """503: the database can not be reached, or gave up; the same request may succeed in a moment."""
    log.warning("database_unavailable", error=str(error))
    answer = _answer(503, INTERNAL_ERROR, DOWN)
    answer["Retry-After"] = str(RETRY_AFTER_S)
    return _logged(answer)


def is_outage(error: BaseException | None) -> bool:
    """Is it the database that failed, not the request?"""
    return isinstance(error, _OUTAGES)


def _of_framework(error: APIException) -> Response:
    answer = _answer(error.status_code, code_of(error.status_code), _first_text(error.detail))
    wait = getattr(error, "wait", None)
    if wait is not None:
        answer["Retry-After"] = str(max(1, round(wait)))
    return answer


def _answer(status: int, code: str, message: str, details: Sequence[FieldError] = ()) -> Response:
    answer = Response(envelope(code, message, details), status=status)
    if status == 401:
        answer["WWW-Authenticate"] = 'Bearer realm="api"'
    return answer


def _logged(answer: Response) -> Response:
    # Django would add a second line for the same failure.
    answer._has_been_logged = True  # type: ignore[attr-defined]
    return answer


def _path(context: Mapping[str, Any]) -> str:
    return str(getattr(context.get("request"), "path", ""))


def _first_text(detail: Any) -> str:
    return next((flat.message for flat in _flat(detail)), "")


def _flat(detail: Any, path: str = "") -> Iterator[FieldError]:
    """REST framework's nested errors as paths: ``jobs[3].run_at``."""
    if isinstance(detail, Mapping):
        for key, inner in detail.items():
            yield from _flat(inner, _joined(path, key))
    elif isinstance(detail, list | tuple):
        for index, inner in enumerate(detail):
            yield from _flat(inner, f"{path}[{index}]" if isinstance(inner, Mapping | list) else path)
    else:
        yield FieldError(path or WHOLE, str(detail))


def _joined(path: str, key: object) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    if key == "non_field_errors":
        return path
    return f"{path}.{key}" if path else str(key)


def _sendable(text: str) -> str:
    # Half a surrogate pair in a field's name would break the answer that complains about it.
    return text[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
