"""Around every request: its id, and an honest answer while the database is away."""

from __future__ import annotations

import re
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponseBase

from scheduler_project.health import healthz, readyz
from scheduler_project.lib import tracing
from scheduler_project.lib.database import drop_broken_connection
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.rest.errors import is_outage
from scheduler_project.metrics_view import metrics
from scheduler_project.views import database_down

GetResponse = Callable[[HttpRequest], HttpResponseBase]
HEADER = "X-Request-Id"
_SAFE = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


class RequestIdMiddleware:
    """Names each request: by the caller's X-Request-Id if it is safe to log, else by a new one.

    The id stands in every log line of the request and in the answer, whatever the answer is.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Bind the id, answer, send it back."""
        given = request.headers.get(HEADER, "")
        request_id = given if _SAFE.fullmatch(given) else str(uuid7())
        # Not unbound at the end: Django logs refused requests after this. The thread's next request binds its own.
        structlog.contextvars.bind_contextvars(request_id=request_id)
        with tracing.request(request.headers.get("traceparent", "")):
            response = self._get_response(request)
        response[HEADER] = request_id
        return response


class ProbeMiddleware:
    """Answers /healthz, /readyz and /metrics before anything looks at the host: probes name hosts that are not ours."""

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response
        self._probes = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """A probe's answer, or whatever comes after this."""
        probe = self._probes.get(request.path)
        return self._get_response(request) if probe is None else probe(request)


class DatabaseDownMiddleware:
    """503 instead of 500 when a view could not reach the database; the next request gets a new connection."""

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer; an outage has become a 503 by now, here or in a REST view's own handler."""
        response = self._get_response(request)
        if response.status_code == 503:
            drop_broken_connection()
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        """Django's hook for what a view raised."""
        return database_down(request, error) if is_outage(error) else None
