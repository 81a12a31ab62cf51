"""The loop's round trips: in order, made ready while one is under way, and none begun behind one that failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError

from jobs.decisions import Succeeded
from jobs.lease import Ending
from jobs.lifecycle.claim import Claim, Want
from jobs.lifecycle.exchange import Handover, Takeaway
from jobs.worker import wire as module
from jobs.worker.names import QueueNames
from jobs.worker.wire import NotSent, Wire
from tests.factories import ANY_TYPE
from tests.waiting import wait_until


class Road:
    """In place of the database: round trips that wait until they are let go, and say what they are told to."""

    def __init__(self) -> None:
        self.begun: list[Handover] = []
        self.error: Exception | None = None
        self.is_open = threading.Event()

    def __call__(self, handover: Handover) -> Takeaway:
        self.begun.append(handover)
        assert self.is_open.wait(20)
        if self.error:
            raise self.error
        return Takeaway()


@pytest.fixture
def road(monkeypatch: pytest.MonkeyPatch) -> Iterator[Road]:
    road = Road()
    monkeypatch.setattr(module, "exchange", road)
    yield road
    road.is_open.set()


@pytest.fixture
def answered() -> threading.Semaphore:
    return threading.Semaphore(0)


@pytest.fixture
def wire(road: Road, answered: threading.Semaphore) -> Iterator[Wire]:
    wire = Wire(QueueNames(), answered.release)
    yield wire
    road.is_open.set()
    wire.close()


def carrying(number: int, seats: int = 0) -> Handover:
    endings = [Ending("job", f"token-{number}", 0, "", Succeeded(), 1.0, 0.0, "w")]
    claim = Claim("w", [Want("q", seats)], ANY_TYPE, 0) if seats else None
    return Handover(endings, claim=claim)


def test_a_second_waits_behind_the_first_and_both_are_known_to_be_under_way(
    wire: Wire, road: Road, answered: threading.Semaphore
) -> None:
    first, second = carrying(1, seats=5), carrying(2, seats=7)
    wire.send(first, [])
    wire.send(second, [])

    wait_until(lambda: road.begun == [first])
    assert (len(wire), wire.seats, wire.is_answered) == (2, 12, False)
    assert [ending.token for ending in wire.endings()] == ["token-1", "token-2"]

    road.is_open.set()
    for handover in (first, second):
        assert answered.acquire(timeout=20)
        assert wire.is_answered
        assert not wire.has_failed
        assert wire.take().handover is handover
    assert road.begun == [first, second]
    assert not wire


def test_behind_one_that_failed_none_is_begun_and_all_that_they_carried_comes_back(
    wire: Wire, road: Road, answered: threading.Semaphore
) -> None:
    road.error = OperationalError("gone")
    first, second = carrying(1), carrying(2)
    wire.send(first, [])
    wire.send(second, [])
    road.is_open.set()
    assert answered.acquire(timeout=20)
    assert wire.has_failed
    with pytest.raises(NotSent):
        wire.call(road.begun.clear)

    error, handovers = wire.take_failed()

    assert error is road.error
    assert handovers == [first, second]
    assert road.begun == [first]
    assert not wire


def test_after_a_failure_was_dealt_with_it_goes_on(wire: Wire, road: Road, answered: threading.Semaphore) -> None:
    road.error = OperationalError("gone")
    road.is_open.set()
    wire.send(carrying(1), [])
    assert answered.acquire(timeout=20)
    wire.take_failed()
    road.error = None

    again = carrying(1)
    wire.send(again, [])

    assert answered.acquire(timeout=20)
    assert wire.take().handover is again
    assert wire.call(lambda: "here") == "here"


def test_what_is_called_comes_after_what_was_sent_and_its_error_is_the_callers(wire: Wire, road: Road) -> None:
    wire.send(carrying(1), [])
    road.is_open.set()

    assert wire.call(lambda: len(road.begun)) == 1
    with pytest.raises(ZeroDivisionError):
        wire.call(lambda: 1 / 0)  # type: ignore[redundant-expr,unused-ignore]
    assert wire.call(threading.current_thread) is not threading.current_thread()


def test_a_round_trip_says_when_it_began_not_when_it_was_made_ready(wire: Wire, road: Road) -> None:
    handover: Any = carrying(1)
    road.is_open.set()

    wire.send(handover, [])

    wire.call(lambda: None)
    assert handover.now > 0
