"""The charts of what happened in a range, in the viewer's zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from django.utils import timezone
from django.utils.safestring import SafeString

from scheduler_project.lib.web.charts import Series, line_chart, stacked_bars

_NOTHING = "Nothing ended in this range."
_UNCOUNTED = "Nobody counted in this range."


class Past(Protocol):
    """Counts and percentiles (seconds) for each bar; ``is_hourly``: the percentiles are those of its hour."""

    bars: list[datetime]
    completed: list[int]
    failed: list[int]
    cancelled: list[int]
    wait: dict[str, list[float | None]]
    run: dict[str, list[float | None]]
    is_hourly: bool


class Deep(Protocol):
    """Counts for each bar; None where nobody counted."""

    ready: list[int | None]
    scheduled: list[int | None]
    in_flight: list[int | None]
    dead_letters: list[int | None]


def charts_of(past: Past, zone: str) -> dict[str, Any]:
    """Throughput, waits and runs."""
    labels = _labels(past.bars)
    parts: list[Series] = [
        ("c-completed", "completed", past.completed),
        ("c-failed", "failed", past.failed),
        ("c-cancelled", "other", past.cancelled),
    ]
    by = ", by the hour" if past.is_hourly else ""
    return {
        "throughput": stacked_bars(f"Attempts ended ({zone})", labels, parts, nothing=_NOTHING),
        "waits": line_chart(f"Wait until claimed{by}", labels, _lines(past.wait), "ms", _NOTHING),
        "runs": line_chart(f"Run time{by}", labels, _lines(past.run), "ms", _NOTHING),
    }


def depth_chart(bars: Sequence[datetime], deep: Deep, zone: str) -> SafeString:
    """How much waited for a worker, and how much ran."""
    lines: list[Series] = [("c-queued", "ready", deep.ready), ("c-running", "running", deep.in_flight)]
    return line_chart(f"Queue depth ({zone})", _labels(bars), lines, nothing=_UNCOUNTED)


def status_chart(bars: Sequence[datetime], deep: Deep, zone: str) -> SafeString:
    """All that was open, by its status."""
    parts: list[Series] = [
        ("c-dead", "dead letter", deep.dead_letters),
        ("c-running", "running", deep.in_flight),
        ("c-queued", "queued", deep.ready),
        ("c-scheduled", "scheduled", deep.scheduled),
    ]
    nothing = _UNCOUNTED if all(count is None for count in deep.ready) else "Nothing was open in this range."
    return stacked_bars(f"Open jobs by status ({zone})", _labels(bars), parts, nothing=nothing)


def _labels(bars: Sequence[datetime]) -> list[str]:
    return [f"{timezone.localtime(at):%H:%M}" for at in bars]


def _lines(values: dict[str, list[float | None]]) -> list[Series]:
    return [(f"c-{name}", name, [None if v is None else v * 1000 for v in some]) for name, some in values.items()]
