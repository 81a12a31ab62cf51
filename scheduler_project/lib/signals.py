"""Signals as messages in a pipe: the handler takes no lock, logs nothing, raises nothing."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable
from enum import Enum


class Message(Enum):
    """What woke the main thread."""

    STOP = b"!"
    WAKE = b"."


class SignalPipe:
    """Collects the given signals, and wake-ups from other threads; the main thread reads them with ``wait``."""

    def __init__(self, numbers: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        for number in numbers:
            signal.signal(number, self._note)

    def wait(self, timeout_s: float | None) -> Message | None:
        """The next message, None if none came within ``timeout_s`` (None waits for ever)."""
        if not select.select([self._out], [], [], timeout_s)[0]:
            return None
        return Message(os.read(self._out, 1))

    def stop(self) -> None:
        """As if a signal had come; from any thread."""
        self._put(Message.STOP)

    def wake(self) -> None:
        """Something happened that the main thread should look at; from any thread."""
        self._put(Message.WAKE)

    def _note(self, _number: int, _frame: object) -> None:
        self._put(Message.STOP)

    def _put(self, message: Message) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe: thousands of unread messages, one more says nothing
            os.write(self._in, message.value)
