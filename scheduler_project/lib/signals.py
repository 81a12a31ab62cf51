"""Signals as messages in a pipe, written there by the interpreter's own handler.

A handler in Python would be too late at times: a signal that comes in the moment before the main thread blocks, or that
the kernel gives to another thread, interrupts nothing, and Python would run the handler when the wait is over: never.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
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
        self._stops = {Message.STOP.value[0], *map(int, numbers)}
        signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, lambda *_: None)

    def wait(self, timeout_s: float | None) -> Message | None:
        """What came since the last call, a stop before a wake-up; None if nothing came within ``timeout_s``.

        None waits for ever.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._out], [], [], left_s)[0]:
                return None
            messages = os.read(self._out, _CHUNK_BYTES)
            self._is_waking = False  # only now: before, its byte could be read with the flag set for ever
            if not self._stops.isdisjoint(messages):
                return Message.STOP
            if Message.WAKE.value in messages:
                return Message.WAKE
            # A signal that somebody else asked for.

    def stop(self) -> None:
        """As if a signal had come; from any thread."""
        self._put(Message.STOP)

    def wake(self) -> None:
        """Something happened that the main thread should look at; from any thread."""
        if not self._is_waking:  # so that wake-ups nobody reads never fill the pipe, which a stop needs
            self._is_waking = True
            self._put(Message.WAKE)

    def _put(self, message: Message) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe: thousands of unread stops, one more says nothing
            os.write(self._in, message.value)
