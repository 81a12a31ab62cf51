"""When a schedule is due: its row's rules put to ``jobs.cron``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, takewhile

from jobs.cron import fires, parse, zone_of
from jobs.models import ScheduledJob

#: So many due times of one schedule are handled in one round; the rest in the next.
AT_ONCE = 1_000


def times_after(schedule: ScheduledJob, after: datetime) -> Iterator[datetime]:
    """The due times of a schedule later than ``after``, within its start and end.

    Raises:
        CronError: the row can not be used; says why.
    """
    if schedule.run_once_at is not None and not schedule.cron_expression:
        if schedule.run_once_at > after:
            yield schedule.run_once_at
        return
    start = after if schedule.starts_at is None else max(after, schedule.starts_at - timedelta(microseconds=1))
    found = fires(
        parse(schedule.cron_expression),
        zone_of(schedule.timezone),
        start,
        gap="skip" if schedule.gap_policy == ScheduledJob.GapPolicy.SKIP else "run_after",
        repeat="both" if schedule.repeat_policy == ScheduledJob.RepeatPolicy.BOTH else "first",
    )
    for at in found:
        if schedule.ends_at is not None and at > schedule.ends_at:
            return
        yield at


def next_time(schedule: ScheduledJob, after: datetime) -> datetime | None:
    """The first due time later than ``after``; None if the schedule has come to its end."""
    return next(times_after(schedule, after), None)


def times_until(schedule: ScheduledJob, first: datetime, until: datetime) -> tuple[list[datetime], int]:
    """Up to AT_ONCE due times from the planned ``first`` to ``until``, both included; and how many more there are.

    The number is exact up to what matters for the misfire policy: the schedule's cap.
    """
    found = [first]
    following = takewhile(until.__ge__, times_after(schedule, first))
    found += islice(following, AT_ONCE - 1)
    return found, sum(1 for _ in islice(following, max(1, schedule.misfire_cap)))
