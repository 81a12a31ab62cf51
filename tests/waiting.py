"""Waiting for conditions instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], timeout_s: float = 20.0, *, every_s: float = 0.02, what: str = "") -> T:
    """Return the first truthy value of ``condition``; fail when ``timeout_s`` is over, saying what was awaited."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what or condition}; last value {value!r}")
        time.sleep(every_s)
