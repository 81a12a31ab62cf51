"""What a handler can ask and tell through its context."""

from __future__ import annotations

import threading
import time

import pytest

from jobs.handlers.base import RetryAfter, Snooze, Stopped
from jobs.worker.outbox import Outbox
from tests.threads import Racer
from tests.worker_parts import context_of, lease_of


def test_the_payload_is_parsed_once_with_every_digit() -> None:
    ctx = context_of(lease_of("x", {"id": 12345678901234567890123, "items": [1]}))

    ctx.payload["items"].append(2)

    assert ctx.payload == {"id": 12345678901234567890123, "items": [1, 2]}


def test_a_fresh_attempt_should_go_on() -> None:
    ctx = context_of(timeout_s=60)

    ctx.check()

    assert (ctx.should_stop(), ctx.is_cancelled()) == (None, False)
    assert ctx.remaining_s is not None
    assert 59 < ctx.remaining_s <= 60


def test_without_a_time_limit_there_is_no_deadline() -> None:
    assert context_of().remaining_s is None


def test_past_the_deadline_the_handler_should_stop() -> None:
    ctx = context_of(timeout_s=5)
    ctx.started -= 6

    with pytest.raises(Stopped, match="timeout"):
        ctx.check()


def test_the_first_reason_to_stop_stays() -> None:
    ctx = context_of(timeout_s=5)

    ctx.stop("cancelled")
    ctx.stop("interrupted")
    ctx.started -= 6

    assert ctx.should_stop() == "cancelled"


def test_sleep_returns_when_the_time_is_over() -> None:
    began = time.monotonic()
    context_of().sleep(0.02)

    assert 0.02 <= time.monotonic() - began < 2


def test_sleep_ends_at_once_when_asked_to_stop() -> None:
    ctx = context_of()
    began = time.monotonic()
    sleeper = Racer(lambda: ctx.sleep(60))
    sleeper.start()

    ctx.stop("cancelled")

    with pytest.raises(Stopped, match="cancelled"):
        sleeper.result(10)
    assert time.monotonic() - began < 5


def test_sleep_is_not_missed_by_a_stop_at_the_same_moment() -> None:
    for _ in range(200):
        ctx = context_of()
        barrier = threading.Barrier(2)
        sleeper = Racer(lambda ctx=ctx: ctx.sleep(60), barrier)  # type: ignore[misc]
        sleeper.start()
        barrier.wait()
        ctx.stop("interrupted")
        with pytest.raises(Stopped):
            sleeper.result(10)


def test_sleep_beyond_the_deadline_ends_with_the_deadline() -> None:
    ctx = context_of(timeout_s=0.03)

    with pytest.raises(Stopped, match="timeout"):
        ctx.sleep(60)


@pytest.mark.parametrize(
    ("told", "kept"), [(0, 0), (49.9, 49), (100, 100), (250, 100), (-3, 0), (float("nan"), 0), (float("inf"), 100)]
)
def test_progress_is_a_whole_number_from_0_to_100(told: float, kept: int) -> None:
    outbox = Outbox()

    context_of(outbox=outbox).progress(told, "half way")

    [news] = outbox.empty()[1]
    assert (news.percent, news.note) == (kept, "half way")


@pytest.mark.parametrize("kind", [Snooze, RetryAfter])
@pytest.mark.parametrize("delay", ["5", 5, 5.0, True])
def test_a_delay_is_a_number_of_seconds_whatever_it_was_given_as(kind: type[Snooze | RetryAfter], delay: float) -> None:
    assert kind(delay).delay_s == float(delay)


@pytest.mark.parametrize("kind", [Snooze, RetryAfter])
@pytest.mark.parametrize("delay", ["soon", None, [5]])
def test_a_delay_that_is_no_number_is_the_handlers_own_mistake(kind: type[Snooze | RetryAfter], delay: float) -> None:
    with pytest.raises((TypeError, ValueError)):
        kind(delay)
