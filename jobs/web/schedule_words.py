"""Schedules in words and small drawings; whatever stands in a row, a page of it must not break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from html import escape
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from jobs.cron import CronError, parse, zone_of
from jobs.cron_notes import Fire, preview, sentence, warnings
from jobs.models import ScheduledJob
from jobs.selectors.schedule_board import LATE, MOST_TICKS, Tick
from jobs.services.schedule_times import times_after

COMING = 5
PREVIEWED = 10


@dataclass(frozen=True, slots=True)
class Shown:
    """A coming fire on three clocks; ``note`` tells of a clock change."""

    local_text: str
    viewer_text: str
    utc_text: str
    note: str

    @classmethod
    def of(cls, fire: Fire) -> Shown:
        local, viewer = (f"{at:%a %d %b %Y, %H:%M %Z}" for at in (fire.local, fire.viewer))
        return cls(local, viewer, f"{fire.at:%d %b, %H:%M}", fire.note)


@dataclass(frozen=True, slots=True)
class Preview:
    """What an editor shows of a schedule that is not stored yet; ``problem`` instead, if it can not be used."""

    problem: str = ""
    sentence: str = ""
    per_day: int | None = None
    warnings: Sequence[str] = ()
    fires: Sequence[Shown] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A schedule in the list."""

    schedule: ScheduledJob
    sentence: str
    ticks: SafeString
    last: Tick | None
    is_late: bool


def row_of(schedule: ScheduledJob, ticks: Sequence[Tick], now: datetime) -> Row:
    return Row(
        schedule, words_of(schedule.cron_expression), draw_ticks(ticks), ticks[-1] if ticks else None,
        is_late(schedule, now),
    )  # fmt: skip


def is_late(schedule: ScheduledJob, now: datetime) -> bool:
    at = schedule.next_run_at
    return schedule.is_active and at is not None and now - at > LATE


@lru_cache(maxsize=4096)
def words_of(expression: str) -> str:
    """The expression in plain English, itself if it can not be read."""
    if not expression:
        return "Once"
    try:
        return sentence(parse(expression))
    except CronError:
        return expression


@dataclass(frozen=True, slots=True)
class Coming:
    """A due time ahead; ``local`` on the schedule's clock, empty if the viewer's is the same."""

    at: datetime
    local: str


def coming(schedule: ScheduledJob, now: datetime, viewer: str) -> list[Coming]:
    """The next due times; none if it is off or its row can not be read."""
    if not schedule.is_active:
        return []
    try:
        zone = zone_of(schedule.timezone)
        times = list(islice(times_after(schedule, now), COMING))
    except CronError:
        return []
    is_same = schedule.timezone == viewer
    return [Coming(at, "" if is_same else f"{at.astimezone(zone):%a %H:%M %Z}") for at in times]


def preview_of(form: Any, viewer: str, now: datetime) -> Preview:
    """What the settings of a form, valid or not, would fire."""
    given = getattr(form, "cleaned_data", {})
    expression, once = given.get("cron_expression"), given.get("run_once_at")
    for name in ("cron_expression", "timezone", "run_once_at", "starts_at", "ends_at"):
        if name in form.errors and form[name].data:
            return Preview(problem=f"{form.fields[name].label}: {form.errors[name][0]}")
    try:
        zone, seen = zone_of(given.get("timezone", "UTC")), ZoneInfo(viewer)
        if expression:
            return _recurring(given, now, zone, seen)
    except CronError as error:
        return Preview(problem=f"It {error}" if expression else str(error))
    if once is None:
        return Preview(problem="Give an expression or a single moment.")
    if once <= now:
        return Preview(problem="This moment has passed: it would never fire.")
    return Preview(sentence="Once", fires=[Shown.of(Fire(once, once.astimezone(zone), once.astimezone(seen), ""))])


def _recurring(given: dict[str, Any], now: datetime, zone: Any, seen: Any) -> Preview:
    cron = parse(given["cron_expression"])
    after, end = now, given.get("ends_at")
    if given.get("starts_at"):
        after = max(now, given["starts_at"] - timedelta(microseconds=1))
    changes: Any = (given.get("gap_policy") or "run_after", given.get("repeat_policy") or "first")
    count = min(PREVIEWED, given.get("max_fires") or PREVIEWED)
    rows = [fire for fire in preview(cron, zone, after, count=count, viewer=seen, changes=changes)
            if end is None or fire.at <= end]  # fmt: skip
    if not rows:
        return Preview(problem="It would never fire: nothing is due between its start and its end.")
    found = [*warnings(cron), *_lint(given, cron, rows)]
    per_day = len(cron.minutes) * len(cron.hours)
    return Preview(sentence=sentence(cron), per_day=per_day, warnings=found, fires=[Shown.of(row) for row in rows])


def _lint(given: dict[str, Any], cron: Any, rows: Sequence[Fire]) -> list[str]:
    found = []
    if given.get("run_once_at"):
        found.append("Give either an expression or a single moment, not both.")
    jitter = timedelta(seconds=given.get("jitter_secs") or 0)
    apart = min((b.at - a.at for a, b in pairwise(rows)), default=timedelta.max)
    if jitter >= apart:
        found.append("The jitter is longer than the time between two fires: jobs may change their order.")
    elif jitter:
        found.append(f"Each job is due up to {jitter.total_seconds():,.0f} s after these times.")
    if len(cron.minutes) == 1 and cron.minutes[0] == 0 and not jitter:
        found.append("It fires on the full hour, as many others do; another minute or a jitter spreads the load.")
    return found


def draw_ticks(ticks: Sequence[Tick]) -> SafeString:
    """The last due times, the newest to the right; colour and shape differ, and words say it to those who listen."""
    if not ticks:
        return format_html('<span class="quiet">{}</span>', "never due yet")
    places = zip(range(7 * (MOST_TICKS - len(ticks)), 7 * MOST_TICKS, 7), ticks, strict=False)
    bars = mark_safe("".join(_bar(x, tick) for x, tick in places))  # noqa: S308 - _bar escapes
    words = ", ".join(f"{n} {word}" for word, n in Counter(tick.word for tick in ticks).most_common())
    label = f"Last {len(ticks)} due times: {words}" if len(ticks) > 1 else f"Last due time: {ticks[0].word}"
    return format_html('<svg class="ticks" viewBox="0 0 {} 20" role="img" aria-label="{}">{}</svg>',
                       7 * MOST_TICKS, label, bars)  # fmt: skip


def _bar(x: int, tick: Tick) -> str:
    """Its drawing, of shapes and texts of ours: a page has a thousand, too many for format_html."""
    told = f"{_on_the_clock(tick.due_at, timezone.get_current_timezone())}: {escape(tick.word)}"
    return f'<g class="t-{tick.css}"><title>{told}</title><path d="{_SHAPES[tick.css].format(x=x)}"/></g>'


@lru_cache(maxsize=8_192)  # schedules share their minutes, and the page is asked for again every few seconds
def _on_the_clock(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%a %d %b, %H:%M:%S}"


#: Full: it ran. Broken: it failed. Half: open. Short: there was no job, or it was cancelled.
_SHAPES = {
    "completed": "M{x} 1h5v18h-5z",
    "fired": "M{x} 1h5v18h-5z",
    "failed": "M{x} 1h5v7h-5zM{x} 12h5v7h-5z",
    "open": "M{x} 10h5v9h-5z",
    "cancelled": "M{x} 14h5v5h-5z",
    "skipped": "M{x} 16h5v3h-5z",
}
