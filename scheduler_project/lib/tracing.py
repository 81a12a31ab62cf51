"""A trace goes on from the request that submits a job to the worker that runs it, and to the jobs which that submits.

What is handed on is W3C's traceparent, kept as the job's trace_id; that needs no library. With APP_TRACING a worker
opens a span for each attempt, by OpenTelemetry's API; where they are sent is its SDK's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from django.conf import settings

from scheduler_project.lib import logs

_FORM = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_of_request: ContextVar[str] = ContextVar("traceparent", default="")


@contextmanager
def request(traceparent: str) -> Iterator[None]:
    """While a request is answered, its trace is the current one; what is no traceparent is left aside."""
    token = _of_request.set(traceparent if _FORM.fullmatch(traceparent) else "")
    try:
        yield
    finally:
        _of_request.reset(token)


def current() -> str:
    """The trace that a job submitted now belongs to: of the open span, the request or the running job; else empty."""
    if settings.TRACING:
        from opentelemetry import propagate

        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        if found := carrier.get("traceparent"):
            return found
    running: str = getattr(logs.current_job.get(), "trace_id", "")
    return _of_request.get() or running


def attempt(trace_id: str, job_type: str, facts: dict[str, str | int]) -> AbstractContextManager[Any]:
    """A span around an attempt, which goes on with the trace of the job. Only where tracing is on.

    What a handler raises is not recorded: it may hold secrets. The job's execution has it, scrubbed.
    """
    from opentelemetry import propagate, trace

    span: AbstractContextManager[Any] = trace.get_tracer("punctual").start_as_current_span(
        job_type,
        context=propagate.extract({"traceparent": trace_id}),
        kind=trace.SpanKind.CONSUMER,
        attributes={"messaging.system": "punctual", "messaging.operation.type": "process", **facts},
        record_exception=False,
        set_status_on_exception=False,
    )
    return span
