"""REST framework: how often who may do what. Three buckets: reading, submitting (each item counts), logging in.

A project's keys share its buckets, a user has his own, whoever is not known is counted by his address.
"""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from orgs.authentication import KeyHolder
from orgs.token_bucket import Limit, Taken, spend, take
from scheduler_project.lib.rest.headers import add_header

#: Behind one address many people may sign in.
LOGINS_PER_ADDRESS = 5
WINDOW_S = 60


class Throttle(BaseThrottle):
    """For everything but signing in."""

    def __init__(self) -> None:
        self._taken: Taken | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        """Take the tokens; tells in headers how many are left."""
        if request.method in SAFE_METHODS:
            limit, cost = Limit("read", settings.RATE_READ_PER_MIN), 1
        else:
            limit, cost = Limit("submit", settings.RATE_SUBMIT_PER_MIN), _items(request, view)
        if not limit.per_minute:
            return True
        self._taken = spend(limit, _caller(request), cost)
        _tell(request, limit, self._taken)
        return self._taken.is_allowed

    def wait(self) -> float | None:
        """Seconds until it is worth trying again."""
        return None if self._taken is None else self._taken.retry_after_s


class LoginThrottle(Throttle):
    """For signing in and signing up: by e-mail address, known or not, and by network address; exact."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Take a token of both."""
        by_email = Limit("login", settings.RATE_LOGIN_PER_MIN)
        if not by_email.per_minute:
            return True
        by_address = Limit("login-address", settings.RATE_LOGIN_PER_MIN * LOGINS_PER_ADDRESS)
        self._taken = take(by_address, address_of(request), 1)
        _tell(request, by_address, self._taken)
        email = _email_of(request)
        if self._taken.is_allowed and email:
            self._taken = take(by_email, hashlib.sha256(email.encode("utf-8", "replace")).hexdigest(), 1)
            _tell(request, by_email, self._taken)
        return self._taken.is_allowed


def take_login(request: HttpRequest, email: str) -> float | None:
    """The same buckets for the login page: None if it may be tried, else the seconds to wait."""
    if not settings.RATE_LOGIN_PER_MIN:
        return None
    by_address = Limit("login-address", settings.RATE_LOGIN_PER_MIN * LOGINS_PER_ADDRESS)
    taken = take(by_address, address_of(request), 1)
    if taken.is_allowed and (known := email.strip().lower()[:254]):
        key = hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()
        taken = take(Limit("login", settings.RATE_LOGIN_PER_MIN), key, 1)
    return None if taken.is_allowed else taken.retry_after_s


def address_of(request: HttpRequest | Request) -> str:
    """The caller's network: an address, of version 6 the first half of it. Behind a proxy as that one wrote it."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    if settings.BEHIND_PROXY:
        # The last entry is our own proxy's; those before it are whatever the caller liked to send.
        address = request.headers.get("X-Forwarded-For", address).rpartition(",")[2].strip()
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network(f"{parsed}/64", strict=False))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def _caller(request: Request) -> str:
    user: Any = request.user
    if user is None or not user.is_authenticated:
        return f"address:{address_of(request)}"
    if isinstance(user, KeyHolder):
        return f"project:{user.machine.project_id}"
    return f"user:{user.pk}"


def _items(request: Request, view: Any) -> int:
    """How many things a request makes: the length of the list that its view says to count."""
    field = getattr(view, "counted_field", None)
    if field is None:
        return 1
    items = request.data.get(field) if isinstance(request.data, dict) else None
    return len(items) if isinstance(items, list) else 1


def _email_of(request: Request) -> str:
    email = request.data.get("email") if isinstance(request.data, dict) else None
    return email.strip().lower()[:254] if isinstance(email, str) else ""


def _tell(request: Request, limit: Limit, taken: Taken) -> None:
    add_header(request, "RateLimit-Policy", f'"{limit.name}";q={limit.per_minute};w={WINDOW_S}')
    add_header(request, "RateLimit", f'"{limit.name}";r={taken.left};t={taken.full_in_s}')
