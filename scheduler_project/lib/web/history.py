"""The charts of what happened in a range, in the viewer's zone."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from django.utils import timezone

from scheduler_project.lib.web.charts import Series, line_chart, stacked_bars

_NOTHING = "Nothing ended in this range."


class Past(Protocol):
    """Counts and percentiles (seconds) for each bar."""

    bars: list[datetime]
    completed: list[int]
    failed: list[int]
    cancelled: list[int]
    wait: dict[str, list[float | None]]
    run: dict[str, list[float | None]]


def charts_of(past: Past, zone: str) -> dict[str, Any]:
    """Throughput, waits and runs."""
    labels = [f"{timezone.localtime(at):%H:%M}" for at in past.bars]
    parts: list[Series] = [
        ("c-completed", "completed", past.completed),
        ("c-failed", "failed", past.failed),
        ("c-cancelled", "other", past.cancelled),
    ]
    return {
        "throughput": stacked_bars(f"Attempts ended ({zone})", labels, parts, nothing=_NOTHING),
        "waits": line_chart("Wait until claimed", labels, _lines(past.wait), "ms", _NOTHING),
        "runs": line_chart("Run time", labels, _lines(past.run), "ms", _NOTHING),
    }


def _lines(values: dict[str, list[float | None]]) -> list[Series]:
    return [(f"c-{name}", name, [None if v is None else v * 1000 for v in some]) for name, some in values.items()]
