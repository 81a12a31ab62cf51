"""Threads for races: let go together, each with a connection of its own that is closed at its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from django.db import connection, transaction

T = TypeVar("T")


def run_together(functions: Sequence[Callable[[], T]], timeout_s: float = 60.0) -> list[T]:
    """Run each function in a thread; their results in order. The first error of any is raised here."""
    threads = start_together(functions)
    return [thread.result(timeout_s) for thread in threads]


def start_together(functions: Sequence[Callable[[], T]]) -> list[Racer[T]]:
    """Start each function in a thread, all let go by one barrier."""
    barrier = threading.Barrier(len(functions))
    racers = [Racer(function, barrier) for function in functions]
    for racer in racers:
        racer.start()
    return racers


class Racer(threading.Thread, Generic[T]):
    """One thread of a race."""

    def __init__(self, function: Callable[[], T], barrier: threading.Barrier | None = None) -> None:
        super().__init__(daemon=True)
        self._function, self._barrier = function, barrier
        self._error: BaseException | None = None
        self._results: list[T] = []

    def run(self) -> None:
        try:
            if self._barrier is not None:
                self._barrier.wait(30)
            self._results.append(self._function())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error
        finally:
            connection.close()

    def result(self, timeout_s: float = 60.0) -> T:
        """Wait for the end; what the function returned or raised."""
        self.join(timeout_s)
        if self.is_alive():
            raise AssertionError(f"thread still running after {timeout_s} s")
        if self._error is not None:
            raise self._error
        return self._results[0]


class Session:
    """A thread with a database connection of its own, in which functions are run one after the other."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)

    def __call__(self, function: Callable[[], T], timeout_s: float = 30.0) -> T:
        """Run a function there; what it returns or raises."""
        return self.begin(function).result(timeout_s)

    def begin(self, function: Callable[[], T]) -> Future[T]:
        """Start a function there and do not wait for it."""
        return self._pool.submit(function)

    def open_transaction(self) -> None:
        """Begin a transaction there."""
        self._atomic = transaction.atomic()
        self(self._atomic.__enter__)

    def commit(self) -> None:
        """End the transaction."""
        self(lambda: self._atomic.__exit__(None, None, None))

    def rollback(self) -> None:
        """End the transaction as if it had never been."""
        self(lambda: transaction.set_rollback(True))
        self.commit()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self(lambda: connection.close())
        self._pool.shutdown()
