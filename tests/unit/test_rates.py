"""How many jobs a worker claims ahead."""

from __future__ import annotations

import pytest

from jobs.decisions import Succeeded
from jobs.lease import Ending
from jobs.worker import rates as module
from jobs.worker.rates import MOST, Rates
from tests.clocks import StandingClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """The rates' clock."""
    clock = StandingClock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def endings(count: int, ran_ms: float | None = 1.0) -> list[Ending]:
    return [Ending("j", "t", 0, "", Succeeded(), ran_ms, 0.0, "w")] * count


def settled(rates: Rates, clock: StandingClock, per_round: int, ran_ms: float | None = 1.0, rounds: int = 60) -> int:
    """Endings at a steady pace, 100 rounds a second; what is then claimed ahead."""
    for _ in range(rounds):
        clock.now += 0.01
        rates.note(endings(per_round, ran_ms))
    return rates.prefetch()


def test_a_new_worker_claims_nothing_ahead(clock: StandingClock) -> None:
    assert Rates().prefetch() == 0


def test_short_jobs_are_claimed_ahead_for_sixty_milliseconds_of_work(clock: StandingClock) -> None:
    assert settled(Rates(), clock, per_round=50) == pytest.approx(300, abs=3)


def test_never_more_than_the_most_is_claimed_ahead(clock: StandingClock) -> None:
    assert settled(Rates(), clock, per_round=10_000) == MOST


def test_long_jobs_are_not_claimed_ahead(clock: StandingClock) -> None:
    assert settled(Rates(), clock, per_round=50, ran_ms=400) == 0


def test_jobs_that_become_long_stop_the_claiming_ahead(clock: StandingClock) -> None:
    rates = Rates()
    settled(rates, clock, per_round=50)

    assert settled(rates, clock, per_round=50, ran_ms=400, rounds=10) == 0


def test_jobs_that_never_began_say_nothing_about_their_length(clock: StandingClock) -> None:
    rates = Rates()
    settled(rates, clock, per_round=50)

    assert settled(rates, clock, per_round=50, ran_ms=None) > 100


def test_a_burst_that_is_over_is_forgotten_after_a_pause(clock: StandingClock) -> None:
    rates = Rates()
    settled(rates, clock, per_round=50)

    clock.now += 60
    rates.note(endings(1))

    assert rates.prefetch() == 0


def test_two_round_trips_in_one_moment_do_not_divide_by_zero(clock: StandingClock) -> None:
    rates = Rates()

    rates.note(endings(1))
    rates.note(endings(1))

    assert 0 <= rates.prefetch() <= MOST
