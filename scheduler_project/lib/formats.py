"""The ``format`` words of JSON Schema that are checked, each by a function that says whether a text is of that form."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime, time
from urllib.parse import urlsplit
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from jsonschema import FormatChecker

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = re.compile(r"\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*", re.IGNORECASE)


def _moment(text: str) -> object:
    return _MOMENT.fullmatch(text) and datetime.fromisoformat(text.upper())


def _day(text: str) -> object:
    return _DAY.fullmatch(text) and date.fromisoformat(text)


def _clock(text: str) -> object:
    return _CLOCK.fullmatch(text) and (time.fromisoformat(text.upper()), True)


def _uuid(text: str) -> object:
    return _UUID.fullmatch(text) and UUID(text)


def _email(text: str) -> object:
    validate_email(text)
    return True


def _uri(text: str) -> object:
    parts = urlsplit(text)
    return text.isascii() and " " not in text and parts.scheme and (parts.netloc or parts.path)


def _host(text: str) -> object:
    return _HOST.fullmatch(text)


FORMATS: dict[str, Callable[[str], object]] = {
    "date-time": _moment,
    "date": _day,
    "time": _clock,
    "uuid": _uuid,
    "email": _email,
    "uri": _uri,
    "hostname": _host,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "regex": re.compile,
}


def _guarded(check: Callable[[str], object]) -> Callable[[object], bool]:
    def is_good(value: object) -> bool:
        return not isinstance(value, str) or bool(check(value))

    return is_good


CHECKER = FormatChecker(formats=())
for _name, _check in FORMATS.items():
    CHECKER.checks(_name, raises=(ValueError, ValidationError, re.error, RecursionError, OverflowError))(
        _guarded(_check)
    )
