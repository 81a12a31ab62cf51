"""What many ask for at the same time is found out once, and given to all of them for a moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")

_TURNS = 16


class Shared(Generic[V]):
    """Values by key, each as old as ``keep_s`` at most; one thread at a time finds out the value of a key.

    Args:
        keep_s: for how long a value is given to others.
        most: how many values are kept.
    """

    def __init__(self, keep_s: float, most: int = 200) -> None:
        self._keep_s, self._most = keep_s, most
        self._kept: dict[Hashable, tuple[float, V]] = {}
        self._lock = threading.Lock()
        # A lock for each key would have to be forgotten again; a few for all of them do as well.
        self._turns = [threading.Lock() for _ in range(_TURNS)]

    def get(self, key: Hashable, find: Callable[[], V], *, is_fresh: bool = False) -> V:
        """The value of a key; ``find`` is called if there is none that is new enough.

        Args:
            is_fresh: find it out in any case.
        """
        if not is_fresh and (kept := self._recent(key)):
            return kept[1]
        with self._turns[hash(key) % _TURNS]:
            if not is_fresh and (kept := self._recent(key)):
                return kept[1]
            value = find()
            with self._lock:
                if len(self._kept) >= self._most:
                    self._kept = {k: kept for k, kept in self._kept.items() if self._is_recent(kept)}
                    if len(self._kept) >= self._most:
                        self._kept.clear()
                self._kept[key] = time.monotonic(), value
            return value

    def _recent(self, key: Hashable) -> tuple[float, V] | None:
        kept = self._kept.get(key)
        return kept if kept and self._is_recent(kept) else None

    def _is_recent(self, kept: tuple[float, V]) -> bool:
        return time.monotonic() - kept[0] < self._keep_s
