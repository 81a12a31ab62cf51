"""Answers to what no view of ours has answered: in the envelope under /api/, as Django's pages elsewhere."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views import defaults

from scheduler_project.lib import logs
from scheduler_project.lib.rest.errors import BROKEN, DOWN, RETRY_AFTER_S, code_of, envelope, is_outage

log = logs.get(__name__)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """400: a host that is not ours, a body that is too large or malformed beyond parsing."""
    if _is_api(request):
        return _envelope(400, "The request is malformed.")
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """403."""
    if _is_api(request):
        return _envelope(403, "This is not allowed.")
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """404: no such path."""
    if _is_api(request):
        return _envelope(404, "Not found.")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """500; or 503 if it was a middleware that could not reach the database."""
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and is_outage(error):
        return database_down(request, error)
    if _is_api(request):
        return _envelope(500, BROKEN)
    return defaults.server_error(request)


def database_down(request: HttpRequest, error: Exception) -> HttpResponse:
    """503 for views outside REST framework."""
    log.warning("database_unavailable", path=request.path, error=str(error))
    answer: HttpResponse
    if _is_api(request):
        answer = _envelope(503, DOWN)
    else:
        answer = HttpResponse(f"{DOWN}\n", status=503, content_type="text/plain; charset=utf-8")
    answer["Retry-After"] = str(RETRY_AFTER_S)
    answer._has_been_logged = True  # type: ignore[attr-defined] # Django would log it again
    return answer


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _envelope(status: int, message: str) -> JsonResponse:
    return JsonResponse(envelope(code_of(status), message), status=status)
