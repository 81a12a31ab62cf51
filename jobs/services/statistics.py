"""Statistics by increments: fold what the work has written, count what waits, forget what is old (ADR 19)."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from jobs import sql
from jobs.models import JobStat, QueueDepth
from scheduler_project.lib.sql import database_now, run

#: Increments folded in one transaction.
AT_ONCE = 2_000
#: No queue is counted further: about 30 ms of the server's time.
CAP = 100_000
QUEUES_AT_ONCE = 8
KEEP = {"minute": timedelta(hours=48), "hour": timedelta(days=90), "day": timedelta(days=730)}
#: The longest range of a chart is a day.
KEEP_DEPTHS = timedelta(hours=25)
FIRST = str(UUID(int=0))


def fold() -> int:
    """Add up to AT_ONCE increments to their sums; how many. Safe to run twice at once, exact after any crash."""
    count: int = run(sql.FOLD_DELTAS, {"limit": AT_ONCE})[0][0]
    return count


def fold_all() -> None:
    """Fold until nothing is left."""
    while fold():
        pass


def look_at_queues(after: str = FIRST, *, cap: int = CAP) -> str | None:
    """Count the next few queues behind ``after``; the last one counted, None when that was the end."""
    rows = run(sql.QUEUE_STATS, {"after": after, "limit": QUEUES_AT_ONCE, "cap": cap})
    return max(row[0] for row in rows) if len(rows) == QUEUES_AT_ONCE else None


def look_at_all_queues() -> None:
    """Count every queue once, and keep that for this minute."""
    after: str | None = FIRST
    while after is not None:
        after = look_at_queues(after)
    keep_depths()


def keep_depths() -> None:
    """Keep what a walk over the queues has counted as the depths of this minute, unless it has some."""
    run(sql.KEEP_DEPTHS, {})


def forget_old() -> None:
    """Drop sums and depths whose time has passed; the sums of all time stay."""
    now = database_now()
    for grain, keep in KEEP.items():
        JobStat.objects.filter(grain=grain, at__lt=now - keep).delete()
    QueueDepth.objects.filter(at__lt=now - KEEP_DEPTHS).delete()
