"""Time-ordered identifiers: their bits, their order, and clocks that go back."""

from __future__ import annotations

import time

import pytest

from scheduler_project.lib.ids import uuid7
from tests.threads import run_together


def test_version_and_variant_are_those_of_the_standard() -> None:
    made = [uuid7() for _ in range(1_000)]

    assert {(id_.version, id_.variant) for id_ in made} == {(7, "specified in RFC 4122")}


def test_the_first_48_bits_are_the_milliseconds_of_now() -> None:
    before = time.time_ns() // 1_000_000
    milliseconds = uuid7().int >> 80
    after = time.time_ns() // 1_000_000

    assert before <= milliseconds <= after + 1


def test_ids_of_one_thread_only_rise() -> None:
    made = [uuid7() for _ in range(20_000)]

    assert made == sorted(made)
    assert [str(id_) for id_ in made] == sorted(str(id_) for id_ in made)


def test_ids_of_many_threads_are_distinct_and_each_thread_sees_its_own_rise() -> None:
    lists = run_together([lambda: [uuid7() for _ in range(3_000)] for _ in range(8)])

    assert all(made == sorted(made) for made in lists)
    assert len({id_ for made in lists for id_ in made}) == 24_000


def test_a_clock_that_goes_back_does_not_break_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first = uuid7()
    monkeypatch.setattr("scheduler_project.lib.ids.time.time_ns", lambda: 1_000_000_000)

    later = [uuid7() for _ in range(10_000)]

    assert [first, *later] == sorted([first, *later])
    assert {id_.version for id_ in later} == {7}


def test_the_random_half_differs_within_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler_project.lib.ids.time.time_ns", lambda: 1_000_000_000)

    made = [uuid7().int & 0x3FFF_FFFF_FFFF_FFFF for _ in range(1_000)]

    assert len(set(made)) == 1_000
