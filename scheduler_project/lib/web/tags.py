"""Template tags and filters of all pages; built in, so templates load nothing.

Those that stand hundreds of times on a page put their markup together themselves: of digits, names of zones and what
they have escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from html import escape
from typing import Any
from uuid import UUID

from django import template
from django.contrib.messages.storage.base import Message
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from scheduler_project.lib.web import charts, durations, links
from scheduler_project.lib.web.choices import named_options, zone_options
from scheduler_project.lib.web.json_tree import json_tree
from scheduler_project.lib.web.text import harmless as make_harmless

register = template.Library()
STATES = {
    "scheduled": "Scheduled", "queued": "Queued", "claimed": "Claimed", "running": "Running", "completed": "Completed",
    "failed": "Failed", "dead_letter": "Dead letter", "cancelled": "Cancelled", "retrying": "Retry", "paused": "Paused",
    "active": "Active", "draining": "Draining", "stopped": "Stopped", "lost": "Lost", "open": "Open",
}  # fmt: skip


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """A drawing of our own sprite; decoration unless it has a label."""
    if label:
        return format_html(
            '<svg class="icon i-{}" role="img" aria-label="{}"><use href="{}#{}"/></svg>', name, label, _sprite(), name
        )
    return _drawing(name)


@lru_cache(maxsize=1)
def _sprite() -> str:
    """Its address; a page has two hundred icons, and it stays the same as long as the process."""
    return static("img/icons.svg")


@lru_cache(maxsize=512)
def _drawing(name: str) -> SafeString:
    return format_html('<svg class="icon i-{}" aria-hidden="true"><use href="{}#{}"/></svg>', name, _sprite(), name)


@register.simple_tag
def state(name: str, word: str = "") -> SafeString:
    """A state as glyph, word and colour."""
    known = name if name in STATES else "scheduled"
    return _state(known, word or STATES.get(name, name))


@lru_cache(maxsize=512)
def _state(known: str, text: str) -> SafeString:
    """The same few on every row."""
    return format_html('<span class="state s-{}">{}<span>{}</span></span>', known, _drawing(f"s-{known}"), text)


@register.simple_tag
def when(moment: datetime | None, now: datetime | None = None) -> SafeString:
    """A time: the viewer's zone in the text and both zones in the title; a script turns the text into "2 m ago"."""
    if moment is None:
        return format_html('<span class="none">{}</span>', "\u2013")
    local, utc = timezone.localtime(moment), moment.astimezone(UTC)
    title = f"{local:%a %d %b %Y, %H:%M:%S} {local.tzname()} · {utc:%H:%M:%S} UTC"
    text = f"{local:%d %b %H:%M:%S}" if now is None else relative((moment - now).total_seconds())
    return SafeString(f'<time datetime="{utc.isoformat()}" title="{title}">{text}</time>')


@register.simple_tag
def clock(moment: datetime | None, with_zone: str = "") -> SafeString:
    """A time as it stands on the viewer's clock, and it stays so; both zones in the title."""
    if moment is None:
        return format_html('<span class="none">{}</span>', "\u2013")
    local, utc = timezone.localtime(moment), moment.astimezone(UTC)
    title = f"{local:%a %d %b %Y, %H:%M:%S} {local.tzname()} · {utc:%H:%M:%S} UTC"
    text = f"{local:%a %d %b %Y, %H:%M}" + (f":{local:%S}" if local.second else "")
    zone = f" {local.tzname()}" if with_zone else ""
    return SafeString(f'<time data-fixed datetime="{utc.isoformat()}" title="{title}">{text}{zone}</time>')


@register.simple_tag
def stamp(moment: datetime) -> SafeString:
    """The time of a line of a log, to the millisecond; the day and both zones in the title."""
    local, utc = timezone.localtime(moment), moment.astimezone(UTC)
    title = f"{local:%a %d %b %Y, %H:%M:%S} {local.tzname()} · {utc:%H:%M:%S} UTC"
    text = f"{local:%H:%M:%S}.{local.microsecond // 1000:03}"
    return SafeString(f'<time data-fixed datetime="{utc.isoformat()}" title="{title}">{text}</time>')


def relative(seconds: float) -> str:
    """In 3 m, or 3 m ago; only the larger unit."""
    size = abs(seconds)
    if size < 5:
        return "now"
    for unit_s, unit in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")):
        if size >= unit_s:
            text = f"{size // unit_s:.0f} {unit}"
            return f"in {text}" if seconds > 0 else f"{text} ago"
    return "now"


@register.filter
def duration(value: float | timedelta | None) -> str:
    """Seconds, or a timedelta, as people read them."""
    return durations.duration(value.total_seconds() if isinstance(value, timedelta) else value)


@register.filter
def milliseconds(value: float) -> str:
    """A duration that is stored as milliseconds."""
    return durations.duration(value / 1000)


@register.filter
def exact(value: float) -> str:
    """Seconds that somebody chose."""
    return durations.exact(value)


@register.filter
def number(value: float | None) -> str:
    """With thousands apart."""
    return durations.number(value)


@register.filter
def harmless(value: object, most: int = 200) -> SafeString:
    """A stranger's text, on its own as to direction."""
    return SafeString(f"<bdi>{escape(make_harmless('' if value is None else value, int(most)))}</bdi>")


@register.filter
def plain(value: object, most: int = 200) -> str:
    """A stranger's text for attributes and titles."""
    return make_harmless("" if value is None else value, int(most))


register.simple_tag(json_tree, name="json_tree")
register.simple_tag(named_options, name="named_options")
register.simple_tag(zone_options, name="zone_options")
register.simple_tag(charts.sparkline, name="sparkline")
register.simple_tag(charts.gauge, name="gauge")


@register.simple_tag
def copy_button(text: str, what: str = "Copy") -> SafeString:
    """Copies a text; without a script the button is not shown."""
    return format_html(
        '<button type="button" class="copy" data-copy="{}" title="{}" aria-label="{}">{}</button>',
        text, what, what, icon("copy"),
    )  # fmt: skip


@register.simple_tag
def enhance() -> SafeString:
    """Attributes of a form that htmx sends: the same answer, without a new page being loaded."""
    return SafeString(
        'hx-boost="true" hx-target="#main" hx-select="#main" hx-swap="outerHTML" hx-select-oob="#toasts" '
        'hx-disabled-elt="find button" hx-push-url="true"'
    )


@register.filter
def undo_of(message: Message) -> dict[str, Any] | None:
    """How a toast's deed is taken back."""
    try:
        return dict(json.loads(message.extra_tags or "null") or {}) or None
    except ValueError:
        return None


@register.filter
def short(value: object) -> str:
    """The end of an id: ids made at one time begin alike."""
    return str(value)[-8:]


@register.filter
def words(value: str) -> list[str]:
    """The words of a text, to loop over."""
    return value.split()


@register.simple_tag(takes_context=True)
def page_url(context: template.Context, name: str, arg: str = "") -> str:
    """The path of a page of the project by its url name; empty while there is no such page."""
    slugs = [context["organization"].slug, context["project"].slug]
    try:
        return reverse(name, args=[*slugs, arg] if arg else slugs)
    except NoReverseMatch:
        return ""


@register.simple_tag(takes_context=True)
def link(context: template.Context, name: str, id_: UUID) -> str:
    """The path of a page of the project about one thing: for lists, where ``url`` would be most of the cost."""
    return links.link(name, context["organization"].slug, context["project"].slug, id_)


@register.simple_tag(takes_context=True)
def csrf_once(context: template.Context) -> SafeString:
    """What ``csrf_token`` writes, to be named and put into each of many forms."""
    return format_html('<input type="hidden" name="csrfmiddlewaretoken" value="{}">', context["csrf_token"])


@register.simple_tag
def total(counts: Mapping[str, int], names: str) -> str:
    """The sum of some of the counts."""
    return durations.number(sum(counts.get(name, 0) for name in names.split()))
