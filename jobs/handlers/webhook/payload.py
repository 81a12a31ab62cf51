"""What http.webhook takes, checked before anything is sent."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import httpx

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
MAX_URL_CHARS, MAX_HEADERS, MAX_HEADER_CHARS = 2_000, 50, 8_000
MAX_BODY_BYTES = 1_048_576
DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S = 30.0, 600.0
_FIELDS = frozenset({"url", "method", "headers", "body", "timeout_s", "expected_status", "retry_status"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
# Ours to set: they say where the message ends and who sent it.
_OURS = re.compile(
    r"host|content-length|transfer-encoding|connection|te|upgrade|accept-encoding|webhook-.*|punctual-.*"
)
_RANGE = re.compile(r"([1-5]\d\d)-([1-5]\d\d)")


class BadPayload(ValueError):
    """The payload can not be sent; names the field, never repeats its value."""


@dataclass(frozen=True, slots=True)
class Call:
    """A checked payload. Status ranges include both ends."""

    url: httpx.URL
    method: str
    headers: dict[str, str]
    body: bytes
    timeout_s: float
    expected: tuple[tuple[int, int], ...]
    retried: tuple[tuple[int, int], ...]


def check_payload(payload: Any) -> Call:
    """Read a payload.

    Raises:
        BadPayload: names the first field that is wrong.
    """
    if not isinstance(payload, dict):
        raise BadPayload("payload: a JSON object is needed")
    if unknown := sorted(set(payload) - _FIELDS):
        raise BadPayload(f"payload.{unknown[0][:50]}: is not known; known are {', '.join(sorted(_FIELDS))}")
    url, method = _url(payload.get("url")), payload.get("method", "POST")
    if not isinstance(method, str) or method not in METHODS:
        raise BadPayload(f"payload.method: one of {', '.join(sorted(METHODS))} is needed")
    headers, body = _headers(payload.get("headers", {})), payload.get("body")
    if isinstance(body, str) or body is None:
        content = (body or "").encode("utf-8", "replace")
    else:
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        headers.setdefault("content-type", "application/json")
    if len(content) > MAX_BODY_BYTES:
        raise BadPayload(f"payload.body: too_large, at most {MAX_BODY_BYTES} bytes are sent")
    return Call(
        url, method, headers, content, _timeout(payload.get("timeout_s", DEFAULT_TIMEOUT_S)),
        _statuses("expected_status", payload.get("expected_status", ["200-299"])),
        _statuses("retry_status", payload.get("retry_status", [])),
    )  # fmt: skip


def _url(value: Any) -> httpx.URL:
    if not isinstance(value, str) or not value or len(value) > MAX_URL_CHARS:
        raise BadPayload(f"payload.url: a text of at most {MAX_URL_CHARS} characters is needed")
    try:
        url = httpx.URL(value)
        host, port = url.host, url.port
    except (httpx.InvalidURL, ValueError, UnicodeError):
        raise BadPayload("payload.url: is no URL") from None
    if url.scheme not in ("http", "https") or not host or (port is not None and not 0 < port < 65_536):
        raise BadPayload("payload.url: http:// or https:// with a host is needed")
    if url.userinfo:
        raise BadPayload("payload.url: must not hold a user or password; use an Authorization header")
    return url.copy_with(fragment=None)


def _headers(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MAX_HEADERS:
        raise BadPayload(f"payload.headers: an object of at most {MAX_HEADERS} texts is needed")
    found: dict[str, str] = {}
    for name, text in value.items():
        if not _TOKEN.fullmatch(name):
            raise BadPayload("payload.headers: a name is not allowed in HTTP")
        if _OURS.fullmatch(name.lower()):
            raise BadPayload(f"payload.headers.{name}: is set by the engine")
        if not isinstance(text, str) or len(text) > MAX_HEADER_CHARS or not _VALUE.fullmatch(text):
            raise BadPayload(f"payload.headers.{name}: a text of at most {MAX_HEADER_CHARS} ASCII characters is needed")
        found[name.lower()] = text
    return found


def _timeout(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TIMEOUT_S:
        raise BadPayload(f"payload.timeout_s: a number above 0, at most {MAX_TIMEOUT_S:.0f}, is needed")
    return float(value)


def _statuses(field: str, value: Any) -> tuple[tuple[int, int], ...]:
    items = value if isinstance(value, list) else [value]
    found = []
    for item in items[:100]:
        text = f"{item}-{item}" if isinstance(item, int) and not isinstance(item, bool) else item
        match = _RANGE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise BadPayload(f"payload.{field}: statuses such as 204 or ranges such as 200-299 are needed")
        found.append((int(match[1]), int(match[2])))
    return tuple(found)
