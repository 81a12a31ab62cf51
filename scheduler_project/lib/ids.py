"""Time-ordered identifiers (UUID version 7): new rows go to the right edge of every index."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

#: In SQL, for whoever fills a table there: to the millisecond, and by chance within it.
NEW_ID = (
    "(lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'"
    " || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid"
)
LOWEST, HIGHEST = UUID(int=0), UUID(int=(1 << 128) - 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_lock = threading.Lock()
_last = 0


def uuid7() -> UUID:
    """A version 7 UUID, later than every one this process made before.

    Sixty bits of time with 12 bits below the millisecond used as a counter (RFC 9562, method 3), then 62
    random bits. If the clock steps back the sequence goes on from where it was.
    """
    return uuid7s(1)[0]


def uuid7s(count: int) -> list[UUID]:
    """So many at once, in order."""
    global _last
    now = time.time_ns()
    with _lock:
        first = max((now // 1_000_000 << 12) | (now % 1_000_000 * 4096 // 1_000_000), _last + 1)
        _last = first + count - 1
    noise = memoryview(os.urandom(8 * count)).cast("Q")
    return [_uuid7(ticks, random) for ticks, random in zip(range(first, first + count), noise, strict=True)]


def _uuid7(ticks: int, random: int) -> UUID:
    milliseconds, counter = ticks >> 12, ticks & 0xFFF
    return UUID(int=milliseconds << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | random & 0x3FFF_FFFF_FFFF_FFFF)


def first_id_at(moment: datetime) -> UUID:
    """The lowest id that could have been made at this moment: ids below it are older, to the millisecond."""
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return UUID(int=min(max(milliseconds, 0), (1 << 48) - 1) << 80)


def moment_of(id_: UUID) -> datetime:
    """When a version 7 UUID was made, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=id_.int >> 80)
