"""A second evaluator of cron schedules, which shares nothing with the product's: the clock runs minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo, available_timezones

MINUTE = timedelta(minutes=1)


def slow_fires(expression: str, zone: ZoneInfo, after: datetime, until: datetime) -> list[datetime]:
    """All fires later than ``after`` and not later than ``until``, both on full minutes."""
    fields = expression.split()
    is_interval = fields[0].startswith("*") or fields[1].startswith("*")
    found: list[datetime] = []
    done: set[datetime] = set()
    before: datetime | None = None
    now = after - timedelta(hours=30)  # to know what was done in the first pass of a repeated hour
    while now <= until:
        wall = now.astimezone(zone).replace(tzinfo=None, fold=0)
        fires = False
        if not is_interval and before is not None:
            skipped = before + MINUTE
            while skipped < wall:
                fires |= _matches(fields, skipped) and skipped not in done
                done.add(skipped)
                skipped += MINUTE
        if _matches(fields, wall):
            fires |= is_interval or wall not in done
            done.add(wall)
        if fires and now > after:
            found.append(now)
        before = wall
        now += MINUTE
    return found


def _matches(fields: list[str], wall: datetime) -> bool:
    day = _holds(fields[2], wall.day, 1, 31)
    weekday = _holds(fields[4], wall.isoweekday() % 7, 0, 6) or (wall.isoweekday() == 7 and _holds(fields[4], 7, 0, 7))
    both = fields[2].startswith("*") or fields[4].startswith("*")
    return (
        ((day and weekday) if both else (day or weekday))
        and _holds(fields[3], wall.month, 1, 12)
        and _holds(fields[1], wall.hour, 0, 23)
        and _holds(fields[0], wall.minute, 0, 59)
    )


def _holds(field: str, value: int, low: int, high: int) -> bool:
    for item in field.split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = map(int, span.split("-"))
        else:
            first = int(span)
            last = high if step else first
        if value in range(first, last + 1, int(step or 1)):
            return True
    return False


def clock_changes(first_year: int, last_year: int) -> dict[str, list[datetime]]:
    """For each zone that changes its clocks in these years the instants of change, to six hours."""
    found: dict[str, list[datetime]] = {}
    for name in sorted(n for n in available_timezones() if "/" in n):
        zone = ZoneInfo(name)
        at, offset = datetime(first_year, 1, 1, tzinfo=UTC), None
        while at.year <= last_year:
            now = at.astimezone(zone).utcoffset()
            if offset is not None and now != offset:
                found.setdefault(name, []).append(at)
            offset, at = now, at + timedelta(hours=6)
    return found


def random_expression(rng: Random) -> str:
    """Five fields; not all of them ever fire."""
    return " ".join(
        [
            _field(rng, 0, 59),
            _field(rng, 0, 23),
            rng.choice(["*", _field(rng, 1, 31)]),
            rng.choice(["*", "*", _field(rng, 1, 12)]),
            rng.choice(["*", _field(rng, 0, 6)]),
        ]
    )


def _field(rng: Random, low: int, high: int) -> str:
    kind = rng.random()
    if kind < 0.3:
        return "*"
    if kind < 0.45:
        return f"*/{rng.randint(1, min(high, 30))}"
    if kind < 0.8:
        return ",".join(str(rng.randint(low, high)) for _ in range(rng.randint(1, 3)))
    first = rng.randint(low, high)
    step = f"/{rng.randint(1, 5)}" if rng.random() < 0.3 else ""
    return f"{first}-{rng.randint(first, high)}{step}"
