"""Pure: when a cron expression fires in an IANA zone, right across clock changes.

A schedule that begins its minute or hour with a
star follows elapsed time: nothing inside a gap, both passes of a repeated hour. Any other names wall times: each
fires once, a skipped one at the first instant after the gap, a repeated one on its first pass (both can be chosen).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

Gap = Literal["run_after", "skip"]
Repeat = Literal["first", "both"]

MAX_CHARS = 120
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7))
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_NUMBER = r"(?:\d{1,2}|[a-z]{3})"
_ITEM = re.compile(rf"(?P<from>\*|{_NUMBER})(?:-(?P<to>{_NUMBER}))?(?:/(?P<step>\d{{1,2}}))?(?:#(?P<nth>[1-5]))?")
#: A leap day that must also be a certain weekday comes every 28 years, and 40 around a century without one.
YEARS_AHEAD = 45
LATEST = date(9990, 1, 1)


class CronError(ValueError):
    """The expression or the zone can not be used; the message says what is wrong and what is allowed."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression. Days match by both fields if one begins with a star, else by either."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    has_last_day: bool
    needs_both_days: bool
    is_interval: bool

    def matches(self, day: date) -> bool:
        """Does it fire on this day?"""
        if day.month not in self.months:
            return False
        in_month = day.day in self.days or (self.has_last_day and (day + timedelta(days=1)).day == 1)
        weekday = day.isoweekday() % 7
        in_week = weekday in self.weekdays or (weekday, (day.day + 6) // 7) in self.nth_weekdays
        return in_month and in_week if self.needs_both_days else in_month or in_week


@lru_cache(maxsize=4096)
def parse(expression: str) -> Cron:
    """Read five fields, or a macro such as @daily.

    Raises:
        CronError: naming the field and what is allowed; also if no day ever matches.
    """
    text = " ".join(expression.split()).lower()
    if len(text) > MAX_CHARS:
        raise CronError(f"is longer than {MAX_CHARS} characters")
    if text.startswith("@"):
        if text not in MACROS:
            raise CronError(f"{text!r} is not known; the macros are {', '.join(MACROS)}")
        text = MACROS[text]
    fields = text.split(" ") if text else []
    if len(fields) != len(_FIELDS):
        raise CronError(f"has {len(fields)} fields; minute, hour, day of month, month and day of week are needed")
    cron = _expand(text, fields)
    if not _has_a_day(cron):
        raise CronError("never fires: no month has such a day")
    return cron


def zone_of(name: str) -> ZoneInfo:
    """The IANA zone of this exact name.

    Raises:
        CronError: not a zone; a name in the wrong case is answered with the right one.
    """
    names = available_timezones()
    if name in names and ("/" in name or name == "UTC"):
        return ZoneInfo(name)
    near = next((known for known in sorted(names) if known.lower() == name.lower() and "/" in known), None)
    hint = f"did you mean {near!r}?" if near else "an IANA name such as Europe/Berlin or UTC is needed"
    raise CronError(f"{name!r} is not a time zone; {hint}")


def next_fire(
    cron: Cron, zone: ZoneInfo, after: datetime, *, gap: Gap = "run_after", repeat: Repeat = "first"
) -> datetime | None:
    """The first instant later than ``after`` (aware), in UTC; None if there is none before the year 9990."""
    return next(fires(cron, zone, after, gap=gap, repeat=repeat), None)


def fires(
    cron: Cron, zone: ZoneInfo, after: datetime, *, gap: Gap = "run_after", repeat: Repeat = "first"
) -> Iterator[datetime]:
    """All instants later than ``after``, in order, without end unless the calendar ends."""
    last = after.astimezone(UTC)
    # One day back: at the border of days a clock change can move a fire of the day before past ``after``.
    day = last.astimezone(zone).date() - timedelta(days=1)
    limit = min(LATEST, _years_later(day, YEARS_AHEAD))
    while day < limit:
        if cron.matches(day):
            for instant in _fires_of_day(cron, zone, day, gap, repeat):
                if instant > last:
                    yield instant
                    last = instant
                    limit = min(LATEST, _years_later(day, YEARS_AHEAD))
        day += timedelta(days=1)


def _fires_of_day(cron: Cron, zone: ZoneInfo, day: date, gap: Gap, repeat: Repeat) -> list[datetime]:
    midnight = datetime.combine(day, time())
    offset = _steady_offset(zone, midnight)
    walls = (midnight.replace(hour=h, minute=m) for h in cron.hours for m in cron.minutes)
    if offset is not None:
        return [(wall - offset).replace(tzinfo=UTC) for wall in walls]
    found: set[datetime] = set()
    for wall in walls:
        found.update(_instants(wall, zone, cron.is_interval, gap, repeat))
    return sorted(found)


def _instants(wall: datetime, zone: ZoneInfo, is_interval: bool, gap: Gap, repeat: Repeat) -> list[datetime]:
    """The instants of a wall time on a day on which the clocks change."""
    passes = [utc for fold in (0, 1) if (utc := _instant(wall, zone, fold)) is not None]
    if not passes:
        return [] if is_interval or gap == "skip" else [_gap_end(wall, zone)]
    return passes if is_interval or repeat == "both" else passes[:1]


def _instant(wall: datetime, zone: ZoneInfo, fold: int) -> datetime | None:
    """The instant of a wall time, None when the clock never shows it."""
    utc = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
    return utc if utc.astimezone(zone).replace(tzinfo=None, fold=0) == wall else None


def _gap_end(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first instant after the gap that swallowed a wall time.

    In a gap fold=1 reads the time with the offset after the jump, an instant before it, and fold=0 with the one
    before, an instant after it; the jump lies between.
    """
    before, after = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (1, 0))
    old = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=int((after - before).total_seconds() // 2))
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


@lru_cache(maxsize=4096)
def _steady_offset(zone: ZoneInfo, midnight: datetime) -> timedelta | None:
    """The zone's offset if the clocks do not change from a day before to a day after this day, else None."""
    hours = (-24, -12, 0, 6, 12, 18, 24, 36, 48)
    offsets = {(midnight + timedelta(hours=h)).replace(tzinfo=zone, fold=f).utcoffset() for h in hours for f in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None


def _years_later(day: date, years: int) -> date:
    return date(min(day.year + years, LATEST.year), 1, 1)


# -- parsing ------------------------------------------------------------------------------------------------------
def _values(field: str, name: str, low: int, high: int) -> set[int]:
    """The numbers a field stands for, without its L and # items.

    Ours, not croniter's: that one builds ranges before it looks at their bounds, lets them wrap, and reads 7-7 as
    every hour (ADR 11).
    """
    values: set[int] = set()
    for item in field.split(","):
        if name == "day of month" and item == "l":
            continue
        found = _ITEM.fullmatch(item)
        if found is None:
            raise CronError(f"{name}: {item!r} is not a number, a range, a step or *")
        if found["nth"]:
            _check_nth(found, name, item)
        else:
            values.update(_range(found, name, low, high))
    return values


def _range(found: re.Match[str], name: str, low: int, high: int) -> range:
    item = found[0]
    if found["to"] and found["from"] == "*":
        raise CronError(f"{name}: {item!r}: a range needs two numbers")
    first = low if found["from"] == "*" else _number(found["from"], name)
    last = _number(found["to"], name) if found["to"] else first
    if name == "day of week" and last == 0 and first > 0:
        last = 7  # sat-sun
    if not (low <= first <= high and low <= last <= high):
        raise CronError(f"{name}: {item!r} is out of bounds; {low} to {high} is allowed")
    if last < first:
        raise CronError(f"{name}: {item!r} runs backwards; write two ranges")
    step = 1 if found["step"] is None else int(found["step"])
    if not 1 <= step <= high:
        raise CronError(f"{name}: the step of {item!r} must be from 1 to {high}")
    has_end = found["to"] or (found["from"] != "*" and found["step"] is None)
    # A star means Sunday to Saturday once, not 0 to 7.
    top = min(high, 6) if name == "day of week" else high
    return range(first, (last if has_end else top) + 1, step)


def _check_nth(found: re.Match[str], name: str, item: str) -> None:
    if name != "day of week" or found["to"] or found["step"] or found["from"] == "*":
        raise CronError(f"{name}: {item!r}: # stands only behind one weekday, as in mon#2")
    if not 0 <= _number(found["from"], name) <= 7:
        raise CronError(f"{name}: {item!r} is out of bounds; 0 to 7 is allowed")


def _number(text: str, name: str) -> int:
    if text.isdigit():
        return int(text)
    if name == "month" and text in _MONTHS:
        return _MONTHS.index(text) + 1
    if name == "day of week" and text in _WEEKDAYS:
        return _WEEKDAYS.index(text)
    raise CronError(f"{name}: {text!r} is not a name for it")


def _expand(text: str, fields: list[str]) -> Cron:
    minutes, hours, days, months, weekdays = (
        _values(field, name, low, high) for field, (name, low, high) in zip(fields, _FIELDS, strict=True)
    )
    nth = [item.split("#") for item in fields[4].split(",") if "#" in item]
    return Cron(
        text=text,
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(day % 7 for day in weekdays),
        nth_weekdays=frozenset((_number(day, "day of week") % 7, int(n)) for day, n in nth),
        has_last_day="l" in fields[2].split(","),
        needs_both_days=fields[2].startswith("*") or fields[4].startswith("*"),
        is_interval=fields[0].startswith("*") or fields[1].startswith("*"),
    )


def _has_a_day(cron: Cron) -> bool:
    """Is there a day in 28 years, the cycle of weekdays and leap years?"""
    start = date(2000, 1, 1)
    return any(cron.matches(start + timedelta(days=n)) for n in range(28 * 365 + 7))
