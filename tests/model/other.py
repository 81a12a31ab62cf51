"""A second session whose transaction stays open for a while, so that two transactions interleave step by step."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection, transaction

T = TypeVar("T")


class Other:
    """One thread with a connection of its own. At most one transaction is open in it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._open: transaction.Atomic | None = None

    def open(self, work: Callable[[], T]) -> T:
        """Do the work in a transaction that stays open; what it returned."""

        def begin() -> T:
            self._open = transaction.atomic()
            self._open.__enter__()
            return work()

        return self._thread.submit(begin).result(30)

    def close(self, *, commits: bool) -> None:
        """End the open transaction."""

        def end() -> None:
            assert self._open is not None
            if not commits:
                transaction.set_rollback(True)
            self._open.__exit__(None, None, None)

        self._thread.submit(end).result(30)

    def leave(self) -> None:
        """Close the session; what is open is rolled back."""
        self._thread.submit(lambda: connection.close()).result(30)
        self._thread.shutdown()
