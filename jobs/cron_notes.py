"""Pure: a cron expression in words, what surprises about it, and its next fires with a note at each clock change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cron_descriptor import FormatError, Options, get_description

from jobs.cron import Cron, Gap, Repeat, fires

MOST = 100


@dataclass(frozen=True, slots=True)
class Fire:
    """One coming fire: in UTC, on the schedule's clock and on the viewer's; ``note`` tells of a clock change."""

    at: datetime
    local: datetime
    viewer: datetime
    note: str


def sentence(cron: Cron) -> str:
    """The expression in plain English."""
    options = Options()
    options.use_24hour_time_format = True
    try:
        text = str(get_description(cron.text, options))
    except FormatError:
        return cron.text
    # The describer says "or" between the day fields; with a star in one of them both must match.
    return text.replace(", or on ", ", if it is ").replace(", or ", ", if it is ") if cron.needs_both_days else text


def warnings(cron: Cron) -> list[str]:
    """What people do not expect of this expression."""
    minute, hour, day, _month, weekday = cron.text.split(" ")
    found = []
    if day != "*" and weekday != "*":
        if cron.needs_both_days:
            found.append("Day of month and day of week must both match, because one of them begins with a star.")
        else:
            found.append("It fires when the day of month or the day of week matches, not only when both do.")
    found += _uneven(minute, "minute", 60, "hour") + _uneven(hour, "hour", 24, "day")
    if day.startswith("*/"):
        found.append(f"Steps of {day[2:]} days start again on the 1st of each month.")
    found += _skipped_months(cron, weekday)
    return found


def _uneven(field: str, name: str, cycle: int, larger: str) -> list[str]:
    if not field.startswith("*/"):
        return []
    step = int(field[2:])
    if cycle % step == 0:
        return []
    last = (cycle - 1) // step * step
    return [f"Steps of {step} {name}s start again each {larger}: after {last} comes 0, {cycle - last} {name}s later."]


def _skipped_months(cron: Cron, weekday: str) -> list[str]:
    if not cron.days or weekday != "*" or cron.has_last_day:
        return []
    first = min(cron.days)
    if first <= 28:
        return []
    if cron.months == {2}:
        return ["It fires in leap years only."]
    return [f"Months without a day {first} are skipped; L stands for the last day of any month."]


def preview(
    cron: Cron,
    zone: ZoneInfo,
    after: datetime,
    *,
    count: int = 10,
    viewer: ZoneInfo | None = None,
    changes: tuple[Gap, Repeat] = ("run_after", "first"),
) -> list[Fire]:
    """The next fires.

    Args:
        count: 1 to MOST.
        viewer: the zone of whoever looks; UTC if not given.
        changes: what becomes of skipped and of repeated times.
    """
    gap, repeat = changes
    rows: list[Fire] = []
    before = after.astimezone(zone)
    for at in islice(fires(cron, zone, after, gap=gap, repeat=repeat), max(1, min(count, MOST))):
        local = at.astimezone(zone)
        rows.append(Fire(at, local, at.astimezone(viewer or ZoneInfo("UTC")), _note(cron, before, local, gap)))
        before = local
    return rows


def _note(cron: Cron, before: datetime, local: datetime, gap: Gap) -> str:
    old, new = before.utcoffset(), local.utcoffset()
    if old is None or new is None or old == new:
        return ""
    change = new - old
    text = f"The clocks go {'forward' if change > timedelta(0) else 'back'} by {_length(abs(change))} before this."
    if not cron.is_interval and local.hour * 60 + local.minute not in {
        h * 60 + m for h in cron.hours for m in cron.minutes
    }:
        text += " Its time is skipped that day, so it runs right after the gap."
    elif not cron.is_interval and gap == "skip":
        text += " A time in the gap is skipped."
    return text


def _length(change: timedelta) -> str:
    minutes = int(change.total_seconds() // 60)
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours} h"] if hours else []
    return " ".join(parts + ([f"{rest} min"] if rest else []))
