"""Signals as messages in a pipe: the handler takes no lock, logs nothing, raises nothing."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable
from enum import Enum

_CHUNK_BYTES = 65_536


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
        self._is_waking = False
        for number in numbers:
            signal.signal(number, self._note)

    def wait(self, timeout_s: float | None) -> Message | None:
        """What came since the last call, a stop before a wake-up; None if nothing came within ``timeout_s``.

        None waits for ever.
        """
        if not select.select([self._out], [], [], timeout_s)[0]:
            return None
        messages = os.read(self._out, _CHUNK_BYTES)
        self._is_waking = False  # only now: before, its byte could be read with the flag set for ever
        return Message.STOP if Message.STOP.value in messages else Message.WAKE

    def stop(self) -> None:
        """As if a signal had come; from any thread."""
        self._put(Message.STOP)

    def wake(self) -> None:
        """Something happened that the main thread should look at; from any thread."""
        if not self._is_waking:  # so that wake-ups nobody reads never fill the pipe, which a stop needs
            self._is_waking = True
            self._put(Message.WAKE)

    def _note(self, _number: int, _frame: object) -> None:
        self._put(Message.STOP)

    def _put(self, message: Message) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe: thousands of unread stops, one more says nothing
            os.write(self._in, message.value)
