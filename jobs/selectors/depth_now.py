"""How deep queues are together: as the leader counted them a moment ago, else counted now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from jobs.models import QueueStat
from jobs.selectors.stats import depths_of, empty_depth

#: The leader counts every second or two, a big queue every 15 s at the latest.
FRESH = timedelta(seconds=20)
_COUNTS = ("ready", "scheduled", "claimed", "running", "dead_letters")
_NAMES = ("queued", "scheduled", "claimed", "running", "dead_letter")


def depth_of_all(project_id: UUID, queue_ids: Iterable[UUID], now: datetime) -> Counter[str]:
    """What these queues of a project hold in all, by status. One statement, two if the leader did not count each."""
    wanted = set(queue_ids)
    counted = QueueStat.objects.filter(project_id=project_id, as_of__gt=now - FRESH)
    rows = [row for row in counted.values_list("queue_id", *_COUNTS) if row[0] in wanted]
    total = Counter(empty_depth())
    if rows:
        queues, *counts = zip(*rows, strict=True)
        wanted -= set(queues)
        total.update(dict(zip(_NAMES, map(sum, counts), strict=True)))
    for depth in depths_of(wanted).values() if wanted else ():
        total.update(depth)
    return total
