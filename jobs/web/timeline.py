"""A job's life as steps with the waits between them, and the same as a strip to scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.models import Job, JobExecution
from jobs.states import IN_FLIGHT, TERMINAL, ExecutionStatus, JobStatus
from scheduler_project.lib.web.durations import duration, exact

#: How the end of an attempt is drawn; snoozed and interrupted ones come back.
_GLYPHS = {
    ExecutionStatus.COMPLETED: ("completed", "c-completed"),
    ExecutionStatus.FAILED: ("failed", "c-failed"),
    ExecutionStatus.LOST: ("lost", "c-failed"),
    ExecutionStatus.CANCELLED: ("cancelled", "c-skipped"),
    ExecutionStatus.RUNNING: ("running", "c-running"),
    ExecutionStatus.SNOOZED: ("scheduled", "c-scheduled"),
    ExecutionStatus.INTERRUPTED: ("queued", "c-queued"),
}
_WIDTH, _LEAST = 1_000.0, 4.0


@dataclass(frozen=True, slots=True)
class Step:
    """A state that was reached: after how long a wait, and how long it took."""

    glyph: str
    word: str
    start: datetime
    end: datetime
    css: str
    wait_s: float
    #: Is it a stretch of time, not a moment?
    lasts: bool = False
    is_expected: bool = False

    @property
    def wait(self) -> str:
        """The wait before it."""
        return exact(self.wait_s)

    @property
    def took(self) -> str:
        """How long it lasted."""
        return duration((self.end - self.start).total_seconds())


def steps_of(job: Job, attempts: Sequence[JobExecution], now: datetime) -> list[Step]:
    """The steps from the first to the last; ``attempts`` are the latest first, as lists have them."""
    steps = [Step("open", "Submitted", job.created_at, job.created_at, "", 0.0)]
    for one in reversed(attempts):
        glyph, css = _GLYPHS[ExecutionStatus(one.status)]
        end = one.finished_at or now
        word = f"Attempt {one.attempt_number} {ExecutionStatus(one.status).label.lower()}"
        steps.append(Step(glyph, word, one.claimed_at, end, css, _between(steps[-1].end, one.claimed_at), lasts=True))
    last = steps[-1].end
    if job.status in TERMINAL and job.completed_at is not None:
        word = str(JobStatus(job.status).label)
        steps.append(Step(job.status, word, job.completed_at, job.completed_at, "", _between(last, job.completed_at)))
    elif job.status not in IN_FLIGHT:
        steps.append(_expected(job, last, now))
    elif not attempts or attempts[0].id is not None:
        steps.append(
            Step("claimed", "Claimed", job.locked_at or now, now, "c-running", _between(last, job.locked_at or now))
        )
    return steps


def _expected(job: Job, last: datetime, now: datetime) -> Step:
    """What it waits for."""
    if job.status == JobStatus.SCHEDULED and not job.is_blocked and job.run_at > now:
        word = "Next try" if job.attempt_count else "Due"
        return Step("retrying" if job.attempt_count else "scheduled", word, job.run_at, job.run_at, "",
                    _between(last, job.run_at), is_expected=True)  # fmt: skip
    word = "Waits for other jobs" if job.is_blocked else "Waits for a worker"
    glyph = "scheduled" if job.status == JobStatus.SCHEDULED else "queued"
    return Step(glyph, word, now, now, "", _between(last, now), is_expected=True)


def draw_strip(steps: Sequence[Step]) -> SafeString:
    """The steps to scale: what took time is full, what waited is a line. Nothing shorter than can be seen."""
    first, last = steps[0].start, max(step.end for step in steps)
    whole = (last - first).total_seconds()
    if whole <= 0:
        return SafeString("")
    rects = []
    for step in steps:
        if step.lasts:
            x = (step.start - first).total_seconds() / whole * _WIDTH
            width = max((step.end - step.start).total_seconds() / whole * _WIDTH, _LEAST)
            rects.append(
                (step.css, f"{max(0.0, min(x, _WIDTH - width)):.1f}", f"{width:.1f}", f"{step.word}: {step.took}")
            )
    drawn = format_html_join(
        "", '<rect class="bar {}" x="{}" y="0" width="{}" height="14"><title>{}</title></rect>', rects
    )
    return format_html(
        '<svg class="distribution strip" viewBox="0 0 1000 14" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="track" y="5" width="1000" height="4"/>{}</svg>',
        f"{duration(whole)} from its submission", drawn,
    )  # fmt: skip


def _between(start: datetime, end: datetime) -> float:
    """Never negative: clocks of a requeued job's past may stand crosswise."""
    return max(0.0, (end - start).total_seconds())
