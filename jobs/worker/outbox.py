"""What handlers say while they run, kept until the next round trip: log lines and progress."""

from __future__ import annotations

import threading
import time
from typing import Any
from uuid import UUID

from jobs.decisions import storable
from jobs.handlers.base import CleanUp, JobContext, Stopped
from jobs.handlers.facts import ProjectFacts
from jobs.lifecycle.exchange import LogLine, Progress
from jobs.selectors.parents import results_of_parents
from jobs.services.retention import step_of_job
from jobs.states import LogLevel
from jobs.worker.facts import FactsCache
from scheduler_project.lib import logs

log = logs.get("jobs.handler")

MAX_LINE_CHARS = 8_000
#: Lines kept for the next round trip. Beyond it lines are dropped and the loss is logged: memory stays bounded.
MAX_LINES = 10_000
MAX_NOTE_CHARS = 200


class Outbox:
    """Buffers for the loop; handlers write from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[LogLine] = []
        #: By lease token: only the latest of each job is worth sending, and never to be crowded out by older ones.
        self._progress: dict[str, Progress] = {}
        self._dropped = 0
        self._facts = FactsCache()

    def __bool__(self) -> bool:
        return bool(self._lines or self._progress)

    def log(self, ctx: JobContext, level: str, message: str) -> None:
        """Take a line of a handler's log; it goes to the process log too, with the same ids."""
        text = logs.redact(storable(message, MAX_LINE_CHARS))
        if level not in LogLevel.values:  # the database would refuse it, and with it all that travels along
            level = LogLevel.INFO.value
        getattr(log, level)("handler_log", message=text)
        with self._lock:
            if len(self._lines) >= MAX_LINES:
                self._dropped += 1
            else:
                self._lines.append(LogLine(ctx.job_id, ctx.token, time.monotonic(), level, text))

    def progress(self, ctx: JobContext, percent: int, note: str | None) -> None:
        """Take the progress of a job; only the latest is sent."""
        short = None if note is None else storable(note, MAX_LINE_CHARS)[:MAX_NOTE_CHARS]
        with self._lock:
            self._progress[ctx.token] = Progress(ctx.job_id, ctx.token, percent, short)

    def parent_results(self, ctx: JobContext) -> dict[str, Any]:
        """Read what the parents of a job have returned."""
        return results_of_parents(UUID(ctx.job_id))

    def clean_up(self, ctx: JobContext, older_than_days: int | None, after: str | None) -> CleanUp:
        """Run one step of the retention of the job's project; a ghost, whose lease is gone, moves nothing."""
        step = step_of_job(UUID(ctx.job_id), UUID(ctx.token), older_than_days, after)
        if step is None:
            raise Stopped("lost")
        return CleanUp(*step)

    def project_facts(self, ctx: JobContext) -> ProjectFacts:
        """What is set for a job's project, at most a few seconds old."""
        return self._facts.of(ctx.project_id)

    def take(self, token: str) -> list[LogLine]:
        """Take out the lines of one attempt."""
        with self._lock:
            taken = [line for line in self._lines if line.token == token]
            if taken:
                self._lines = [line for line in self._lines if line.token != token]
        return taken

    def empty(self) -> tuple[list[LogLine], list[Progress]]:
        """Take everything out."""
        with self._lock:
            lines, progress, dropped = self._lines, self._progress, self._dropped
            self._lines, self._progress, self._dropped = [], {}, 0
        if dropped:
            log.warning("log_lines_dropped", count=dropped, limit=MAX_LINES)
        return lines, list(progress.values())

    def put_back(self, lines: list[LogLine], progress: list[Progress]) -> None:
        """The round trip failed: keep them for the next one, the oldest first, within the limit."""
        with self._lock:
            self._lines = (lines + self._lines)[:MAX_LINES]
            self._progress = {**{item.token: item for item in progress}, **self._progress}
