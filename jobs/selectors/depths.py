"""How deep a queue, or all of a project's together, was in each bar of a range: what the leader kept of its counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import DateTimeField, DurationField, Func, Max, Value

from jobs.models import WHOLE_PROJECT, QueueDepth

_COUNTS = ("ready", "scheduled", "in_flight", "dead_letters")
Counts = list[int | None]


@dataclass(slots=True)
class Depths:
    """By bar the most there were in any of its minutes; None in a bar in which nobody counted."""

    ready: Counts
    scheduled: Counts
    in_flight: Counts
    dead_letters: Counts


def depths(project_id: UUID, bars: Sequence[datetime], queue_id: UUID | None = None) -> Depths:
    """Those of a queue, or of a whole project. One statement.

    Args:
        bars: when each begins; two at least, equally long.
    """
    wanted = WHOLE_PROJECT if queue_id is None else queue_id
    step = bars[1] - bars[0]
    bar = Func(
        Value(step, DurationField()), "at", Value(bars[0], DateTimeField()), function="date_bin",
        output_field=DateTimeField(),
    )  # fmt: skip
    rows = QueueDepth.objects.filter(
        project_id=project_id, queue_id__in={WHOLE_PROJECT, wanted}, at__gte=bars[0], at__lt=bars[-1] + step
    )
    most = rows.annotate(bar=bar).values_list("bar", "queue_id").annotate(*(Max(name) for name in _COUNTS))
    found = {(at, of): counts for at, of, *counts in most}
    nothing = [0] * len(_COUNTS)
    by_bar: list[Sequence[int | None]] = [
        found.get((at, wanted), nothing) if (at, WHOLE_PROJECT) in found else [None] * len(_COUNTS) for at in bars
    ]
    return Depths(*(list(counts) for counts in zip(*by_bar, strict=True)))
