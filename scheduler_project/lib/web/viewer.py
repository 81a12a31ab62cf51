"""What a viewer chose, kept in cookies so that the server draws it: time zone, theme, pace of live regions."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from functools import cache

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

ZONE, BROWSER_ZONE, THEME, PACE, PROJECT = "tz", "tz_browser", "theme", "pace", "project"
THEMES = ("system", "light", "dark")
#: Seconds between polls; auto slows down while nobody touches the page.
PACES = ("auto", "1", "2", "5", "15", "60", "off")
A_YEAR_S = 31_536_000


@cache
def zones() -> tuple[str, ...]:
    """The names of all zones."""
    return tuple(sorted(zoneinfo.available_timezones()))


def zone_of(request: HttpRequest) -> str:
    """The chosen zone, else the browser's, else UTC."""
    for name in (ZONE, BROWSER_ZONE):
        value = request.COOKIES.get(name, "").replace("%2F", "/")
        if value in zones():
            return value
    return "UTC"


def choice_of(request: HttpRequest, name: str, allowed: tuple[str, ...]) -> str:
    """A cookie's value if it is allowed, else the first of what is."""
    value = request.COOKIES.get(name, "")
    return value if value in allowed else allowed[0]


class ViewerMiddleware:
    """Draws times in the viewer's zone; the API and Django admin stay in UTC."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer in the zone."""
        if request.path.startswith(("/api/", "/admin/", "/static/")):
            return self._get_response(request)
        with timezone.override(zoneinfo.ZoneInfo(zone_of(request))):
            return self._get_response(request)
