"""One handler, called as a worker would call it, with a context that keeps what it says. Touches no database."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asgiref.sync import async_to_sync

from jobs.handlers.base import CleanUp, JobContext, StopReason
from jobs.handlers.facts import ProjectFacts
from jobs.handlers.registry import Handler, known_handler, list_handlers
from jobs.new_job import NewJob, checked, sealed
from scheduler_project.lib import json_gate
from scheduler_project.lib.ids import uuid7


class Line(NamedTuple):
    """A line that the handler logged."""

    level: str
    message: str


class Step(NamedTuple):
    """How far the handler said it was."""

    percent: int
    note: str | None


@dataclass(slots=True)
class Inline:
    """What came of a call.

    Attributes:
        result: as it would be stored: after JSON, without secrets.
    """

    result: Any = None
    logs: list[Line] = field(default_factory=list)
    progress: list[Step] = field(default_factory=list)

    @property
    def messages(self) -> list[str]:
        """The logged lines without their levels."""
        return [line.message for line in self.logs]


class _Recorder:
    """The other end of the context."""

    def __init__(self, into: Inline, parents: Mapping[str, Any]) -> None:
        self._into, self._parents = into, parents

    def log(self, ctx: JobContext, level: str, message: str) -> None:
        self._into.logs.append(Line(level, message))

    def progress(self, ctx: JobContext, percent: int, note: str | None) -> None:
        self._into.progress.append(Step(percent, note))

    def parent_results(self, ctx: JobContext) -> dict[str, Any]:
        return dict(self._parents)

    def project_facts(self, ctx: JobContext) -> ProjectFacts:
        return ProjectFacts()

    def clean_up(self, ctx: JobContext, older_than_days: int | None, after: str | None) -> CleanUp:
        raise TypeError("ctx.clean_up works on the database under a lease: use drain() for a handler that calls it")


def run_inline(
    which: str | Callable[..., Any],
    payload: Any = None,
    *,
    attempt: int = 1,
    parent_results: Mapping[str, Any] | None = None,
    stop: StopReason | None = None,
) -> Inline:
    """Call a handler with a payload; what it returned and said. What it raises is raised.

    Args:
        which: the decorated function, or a job type.
        stop: the handler is asked to stop for this reason before it begins.

    Raises:
        ValidationFailed: the payload would be refused when it is submitted.
        LookupError: there is no such handler.
    """
    found, job_type = _find(which)
    job = NewJob(job_type=job_type, payload={} if payload is None else payload)
    [text] = sealed([job], checked([job]))
    made = Inline()
    ctx = JobContext(
        job_id=str(uuid7()),
        token=str(uuid7()),
        queue_id=str(uuid7()),
        job_type=job_type,
        attempt=attempt,
        fencing_number=attempt,
        trace_id="",
        payload_json=text,
        timeout_s=found.timeout_s,
        outbox=_Recorder(made, parent_results or {}),
    )
    if stop is not None:
        ctx.stop(stop)
    result = async_to_sync(found.run)(ctx) if found.is_async else found.run(ctx)
    made.result = None if result is None else json.loads(ctx.scrub_json(json_gate.encode(result)))
    return made


def _find(which: str | Callable[..., Any]) -> tuple[Handler, str]:
    if isinstance(which, str):
        found = known_handler(which)
        if found is None:
            raise LookupError(f"There is no handler for {which!r}.")
        return found, which
    for found in list_handlers():
        if which in (found.run, getattr(found.run, "__wrapped__", None)):
            return found, found.job_type.replace("*", "x")
    raise LookupError(f"{which!r} is no handler: it has not been decorated, or in another process.")
