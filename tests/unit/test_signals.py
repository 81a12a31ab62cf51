"""Signals and wake-ups as messages: a stop is never lost and never waits behind wake-ups."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_project.lib.signals import Message, SignalPipe
from tests.threads import Racer
from tests.waiting import wait_until


@pytest.fixture
def pipe() -> Iterator[SignalPipe]:
    """A pipe that listens to SIGUSR1."""
    before = signal.getsignal(signal.SIGUSR1)
    pipe = SignalPipe([signal.SIGUSR1])
    yield pipe
    signal.signal(signal.SIGUSR1, before)
    signal.set_wakeup_fd(-1)
    os.close(pipe._in)
    os.close(pipe._out)


def test_without_a_message_the_wait_ends_with_its_time(pipe: SignalPipe) -> None:
    began = time.monotonic()

    assert pipe.wait(0.02) is None
    assert pipe.wait(0.0) is None
    assert time.monotonic() - began < 2


def test_a_signal_is_a_stop(pipe: SignalPipe) -> None:
    os.kill(os.getpid(), signal.SIGUSR1)

    assert pipe.wait(5) is Message.STOP
    assert pipe.wait(0) is None


def test_a_second_signal_is_a_second_stop(pipe: SignalPipe) -> None:
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGUSR1)
        assert pipe.wait(5) is Message.STOP


def test_a_signal_that_another_thread_gets_ends_the_wait(pipe: SignalPipe) -> None:
    """As one that comes in the moment before the main thread blocks: nothing interrupts that, nor runs Python there."""
    stat = Path(f"/proc/self/task/{threading.main_thread().native_id}/stat")

    def signal_here() -> None:
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "S", timeout_s=5)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    sender = Racer(signal_here)
    sender.start()

    assert pipe.wait(5) is Message.STOP
    sender.result(5)


def test_a_signal_of_somebody_else_ends_no_wait(pipe: SignalPipe) -> None:
    before = signal.signal(signal.SIGUSR2, lambda *_: None)
    try:
        os.kill(os.getpid(), signal.SIGUSR2)
        assert pipe.wait(0.05) is None
        os.kill(os.getpid(), signal.SIGUSR2)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert pipe.wait(5) is Message.STOP
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_a_wake_up_from_another_thread_ends_the_wait(pipe: SignalPipe) -> None:
    waker = Racer(pipe.wake)
    waker.start()

    assert pipe.wait(10) is Message.WAKE
    waker.result(5)


def test_a_burst_of_wake_ups_is_one(pipe: SignalPipe) -> None:
    for _ in range(1_000):
        pipe.wake()

    assert pipe.wait(5) is Message.WAKE
    assert pipe.wait(0) is None
    pipe.wake()
    assert pipe.wait(5) is Message.WAKE


def test_a_stop_is_not_lost_behind_any_number_of_wake_ups(pipe: SignalPipe) -> None:
    for _ in range(200_000):
        pipe.wake()
    os.kill(os.getpid(), signal.SIGUSR1)
    pipe.wake()

    assert pipe.wait(5) is Message.STOP


def test_no_wake_up_is_lost_between_threads_that_wake_and_one_that_waits(pipe: SignalPipe) -> None:
    told = seen = 0

    def wake() -> None:
        nonlocal told
        for _ in range(20_000):
            told += 1
            pipe.wake()

    waker = Racer(wake)
    waker.start()
    while seen < 20_000:
        assert pipe.wait(10) is Message.WAKE, f"told {told}, seen {seen}"
        seen = told
    waker.result(10)
