"""Answers to what no view of ours has answered: in the envelope under /api/, as Django's pages elsewhere."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.template.loader import render_to_string
from structlog.contextvars import get_contextvars

from scheduler_project.lib import logs
from scheduler_project.lib.rest.errors import BROKEN, DOWN, RETRY_AFTER_S, code_of, envelope, is_outage

log = logs.get(__name__)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """400: a host that is not ours, a body that is too large or malformed beyond parsing."""
    if _is_api(request):
        return _envelope(400, "The request is malformed.")
    return error_page(request, 400, "That request makes no sense", "It is malformed or too large.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """403."""
    if _is_api(request):
        return _envelope(403, "This is not allowed.")
    return error_page(request, 403, "Not allowed", "You may not open this.")


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """404: no such path."""
    if _is_api(request):
        return _envelope(404, "Not found.")
    return error_page(request, 404, "Nothing here", "There is no such page, or not for you.")


def server_error(request: HttpRequest) -> HttpResponseBase:
    """500; or 503 if it was a middleware that could not reach the database."""
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and is_outage(error):
        return database_down(request, error)
    if _is_api(request):
        return _envelope(500, BROKEN)
    return error_page(request, 500, "Something broke", "It was logged. Trying again may help.")


def database_down(request: HttpRequest, error: Exception) -> HttpResponse:
    """503 for views outside REST framework."""
    log.warning("database_unavailable", path=request.path, error=str(error))
    answer: HttpResponse
    if _is_api(request):
        answer = _envelope(503, DOWN)
    else:
        answer = error_page(
            request, 503, "The database does not answer", "Jobs wait and nothing is lost. Try again soon."
        )
    answer["Retry-After"] = str(RETRY_AFTER_S)
    answer._has_been_logged = True  # type: ignore[attr-defined] # Django would log it again
    return answer


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: a form without its token, or one that is older than the session."""
    return error_page(request, 403, "This form is too old", "Go back, load the page again and send it once more.")


def error_page(request: HttpRequest, status: int, title: str, text: str) -> HttpResponse:
    """An error as a page that needs neither session nor database, with the id to ask for."""
    context = {"status": status, "title": title, "text": text, "request_id": get_contextvars().get("request_id", "")}
    return HttpResponse(render_to_string("shared/plain_error.html", context), status=status)


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _envelope(status: int, message: str) -> JsonResponse:
    return JsonResponse(envelope(code_of(status), message), status=status)
