"""What many ask for at once is found out once, is not old, and never another's."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from scheduler_project.lib import shared as module
from scheduler_project.lib.shared import Shared
from tests.clocks import StandingClock
from tests.threads import Racer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """The time by which values get old."""
    clock = StandingClock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_value_is_found_once_until_it_is_old(clock: StandingClock) -> None:
    shared, found = Shared[int](1.0), iter([1, 2, 3])

    assert [shared.get("a", lambda: next(found)) for _ in range(3)] == [1, 1, 1]
    clock.now += 1.0
    assert shared.get("a", lambda: next(found)) == 2


def test_who_wants_it_fresh_gets_it_fresh_and_others_have_it_then(clock: StandingClock) -> None:
    shared, found = Shared[int](1.0), iter([1, 2])
    shared.get("a", lambda: next(found))

    assert shared.get("a", lambda: next(found), is_fresh=True) == 2
    assert shared.get("a", lambda: next(found)) == 2


def test_keys_are_apart(clock: StandingClock) -> None:
    shared = Shared[str](1.0)

    assert [shared.get(key, f"of {key}".strip) for key in ("a", "b", "a")] == ["of a", "of b", "of a"]


def test_a_failure_is_not_kept(clock: StandingClock) -> None:
    shared = Shared[int](1.0)
    with pytest.raises(ZeroDivisionError):
        shared.get("a", lambda: 1 // 0)

    assert shared.get("a", lambda: 7) == 7


def test_no_more_is_kept_than_was_said(clock: StandingClock) -> None:
    shared = Shared[int](1.0, most=3)
    for n in range(10):
        shared.get(n, partial(int, n))

    assert len(shared._kept) <= 3
    assert shared.get(9, lambda: -1) == 9


def test_of_many_at_once_one_finds_it() -> None:
    shared, calls = Shared[int](60.0), 0
    began, goes_on = threading.Event(), threading.Event()

    def find() -> int:
        nonlocal calls
        calls += 1
        began.set()
        goes_on.wait(5)
        return 7

    racers = [Racer(lambda: shared.get("a", find)) for _ in range(8)]
    for racer in racers:
        racer.start()
    assert began.wait(5)
    goes_on.set()

    assert [racer.result(5) for racer in racers] == [7] * 8
    assert calls == 1
