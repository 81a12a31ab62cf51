"""Token buckets shared by all processes, and purses: tokens that a process took ahead to spend without asking.

What is spent was taken from the bucket before, so all processes together never exceed it: in any time of W seconds at
most ``burst + rate * (W + PURSE_S)`` tokens are spent. What a purse still holds after PURSE_S is thrown away, which
only makes the limit a little stricter.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now

from orgs import sql
from orgs.models import TokenBucket
from scheduler_project.lib.sql import run

#: How long a process may spend what it took ahead, and how much that is: a part of the bucket or the flow of a while.
PURSE_S = 5.0
PURSE_SHARE, PURSE_FLOW_S = 0.02, 1.0
MAX_PURSES = 10_000
#: A bucket nobody used for so long is full again, whatever its limit: limits are per minute, a queue's per day at most.
KEEP_S = 2 * 86_400


@dataclass(frozen=True, slots=True)
class Limit:
    """So many tokens a minute, of which a full bucket holds one minute's worth. ``name`` is shown to clients."""

    name: str
    per_minute: int

    @property
    def rate(self) -> float:
        """Tokens that come back a second."""
        return self.per_minute / 60

    @property
    def burst(self) -> float:
        """What a full bucket holds."""
        return float(self.per_minute)


@dataclass(frozen=True, slots=True)
class Taken:
    """The answer to taking tokens; ``left`` is what could be taken now, ``retry_after_s`` is for who was refused."""

    is_allowed: bool
    left: int
    full_in_s: int
    retry_after_s: float = 0.0


def take(limit: Limit, key: str, cost: int) -> Taken:
    """Take exactly ``cost`` tokens or none, by one statement. More than a full bucket holds costs a full bucket."""
    wanted = _payable(limit, cost)
    granted, left = _take(limit, key, wanted, wanted)
    return _answer(limit, left, 0.0, wanted, is_allowed=granted >= wanted)


def spend(limit: Limit, key: str, cost: int) -> Taken:
    """As ``take``, out of this process's purse; most calls need no statement."""
    wanted = _payable(limit, cost)
    purse = _purse_of(f"{limit.name}:{key}")
    with purse.lock:
        own = purse.tokens if time.monotonic() < purse.until else 0.0
        if own < wanted:
            ahead = math.floor(max(limit.rate * PURSE_FLOW_S, limit.burst * PURSE_SHARE))
            missing = wanted - own
            granted, purse.left = _take(limit, key, missing, max(missing, float(ahead)))
            if granted < missing:
                return _answer(limit, purse.left + own, 0.0, wanted, is_allowed=False)
            # The older tokens keep their time: else a purse that is always a little used would never run out.
            purse.until = purse.until if own else time.monotonic() + PURSE_S
            own += granted
        purse.tokens = own - wanted
        return _answer(limit, purse.left, purse.tokens, wanted, is_allowed=True)


def forget_full_buckets(limit: int) -> int:
    """Delete up to ``limit`` buckets nobody has used for long; how many."""
    unused = TokenBucket.objects.filter(refilled_at__lt=Now() - timedelta(seconds=KEEP_S))
    keys = list(unused.values_list("key", flat=True)[:limit])
    return TokenBucket.objects.filter(key__in=keys, refilled_at__lt=Now() - timedelta(seconds=KEEP_S)).delete()[0]


@dataclass(slots=True)
class _Purse:
    lock: threading.Lock
    tokens: float = 0.0
    left: float = 0.0
    until: float = 0.0


_purses: dict[str, _Purse] = {}
_making = threading.Lock()


def empty_purses() -> None:
    """Throw away what this process took ahead; for tests, whose databases go back in time."""
    with _making:
        _purses.clear()


def _purse_of(key: str) -> _Purse:
    purse = _purses.get(key)
    if purse is None:
        with _making:
            if len(_purses) >= MAX_PURSES:
                _purses.clear()  # costs their owners a statement each, and some of their tokens
            purse = _purses.setdefault(key, _Purse(threading.Lock()))
    return purse


def _payable(limit: Limit, cost: int) -> float:
    return min(float(max(1, cost)), limit.burst)


def _take(limit: Limit, key: str, least: float, most: float) -> tuple[float, float]:
    params = {"key": f"{limit.name}:{key}", "rate": limit.rate, "burst": limit.burst, "least": least, "most": most}
    rows = run(sql.TAKE_TOKENS, params) or run(sql.TAKE_TOKENS, params)
    return rows[0] if rows else (0.0, 0.0)


def _answer(limit: Limit, left: float, purse: float, wanted: float, *, is_allowed: bool) -> Taken:
    there = left + purse
    return Taken(
        is_allowed=is_allowed,
        left=max(0, math.floor(there)),
        full_in_s=max(0, math.ceil((limit.burst - there) / limit.rate)),
        retry_after_s=0.0 if is_allowed else max(0.0, (wanted - left) / limit.rate),
    )
