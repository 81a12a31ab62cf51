"""Which queues a worker claims from: fair shares between bands, projects and queues, and where each claim begins."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from jobs.lease import Lease
from jobs.lifecycle.claim import HEAD, Want
from jobs.worker import roster as module
from jobs.worker.roster import HALF_LIFE_S, HEAD_EVERY_S, Roster
from tests.clocks import StandingClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """The roster's clock."""
    clock = StandingClock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def roster_of(*rows: tuple[str, str, int]) -> Roster:
    """A roster of (queue, project, priority)."""
    roster = Roster()
    roster.refresh([(*row, False) for row in rows])
    return roster


def lease_of(queue_id: str, number: int = 1, *, priority: int = 0) -> Lease:
    job_id, run_at = f"job-{number}", f"2026-01-01 00:00:{number:02}+00"
    return Lease(job_id, f"t{number}", queue_id, "noop", "{}", 0, 1, 60, run_at, "", True, priority, run_at, number)


def at_limit(queue_id: str, *numbers: int) -> list[Lease]:
    """What a claim brings that took all the room there was."""
    return [lease_of(queue_id, n)._replace(room=len(numbers)) for n in numbers]


def serve(roster: Roster, seats: int, *, ms: float = 0) -> Counter[str]:
    """One claim from queues that never run dry, whose jobs take ``ms``; seats by queue."""
    wants = roster.plan(seats)
    roster.learn(wants, [lease_of(want.queue_id, n) for want in wants for n in range(want.seats)])
    for want in wants:
        roster.charge(want.queue_id, want.seats * ms)
    return Counter({want.queue_id: want.seats for want in wants})


def test_no_queues_or_no_seats_mean_nothing_to_claim() -> None:
    assert Roster().plan(10) == []
    assert roster_of(("a", "p", 0)).plan(0) == []
    assert roster_of(("a", "p", 0)).plan(-3) == []


def test_a_single_queue_gets_all_seats() -> None:
    assert [(w.queue_id, w.seats) for w in roster_of(("a", "p", 0)).plan(37)] == [("a", 37)]


@pytest.mark.parametrize("seats", [1, 3, 9, 10, 25, 100])
def test_seats_are_given_out_exactly(seats: int) -> None:
    roster = roster_of(*[(f"q{i}", f"p{i % 3}", i % 2 * 5) for i in range(11)])

    for _ in range(50):
        assert sum(want.seats for want in roster.plan(seats)) == seats


def test_the_highest_band_gets_most_seats_and_the_lower_its_tenth() -> None:
    roster = roster_of(("high", "p", 9), ("low", "p", 0))

    assert serve(roster, 20) == {"high": 18, "low": 2}


def test_with_few_seats_the_lower_band_gets_one_in_ten_turns() -> None:
    roster = roster_of(("high", "p", 9), ("low", "p", 0))

    total = sum((serve(roster, 1) for _ in range(100)), Counter())

    assert total == {"high": 90, "low": 10}


@pytest.mark.parametrize("seats", [1, 4, 10, 40])
def test_every_lower_band_has_its_turn(seats: int) -> None:
    roster = roster_of(*[(f"band{i}", "p", i) for i in range(5)])

    total = sum((serve(roster, seats) for _ in range(200)), Counter())

    lower = [total[f"band{i}"] for i in range(4)]
    assert min(lower) > 0
    assert max(lower) <= 2 * min(lower)
    assert total["band4"] >= 0.85 * sum(total.values())


def test_queues_of_one_band_take_turns() -> None:
    roster = roster_of(*[(f"q{i}", "p", 0) for i in range(12)])

    total = sum((serve(roster, 1) for _ in range(120)), Counter())

    assert set(total.values()) == {10}


def test_the_project_that_used_less_time_comes_first() -> None:
    roster = roster_of(("slow", "p-slow", 0), ("quick", "p-quick", 0))
    roster.charge("slow", 5_000)

    assert [serve(roster, 1) for _ in range(5)] == [{"quick": 1}] * 5


def test_projects_share_by_time_used_not_by_the_number_of_jobs() -> None:
    roster = roster_of(("slow", "p-slow", 0), ("quick", "p-quick", 0))

    jobs: Counter[str] = Counter()
    for _ in range(550):
        wants = roster.plan(1)
        roster.learn(wants, [lease_of(wants[0].queue_id)])
        roster.charge(wants[0].queue_id, 100 if wants[0].queue_id == "slow" else 10)
        jobs[wants[0].queue_id] += 1

    assert jobs["quick"] == pytest.approx(10 * jobs["slow"], rel=0.1)


@pytest.mark.parametrize("seats", [2, 10, 64, 200])
def test_seats_given_out_at_once_are_shared_by_time_too(seats: int) -> None:
    roster = roster_of(("slow", "p-slow", 0), ("quick", "p-quick", 0))
    cost_ms = {"slow": 100, "quick": 10}

    total: Counter[str] = Counter()
    for _ in range(100):
        wants = roster.plan(seats)
        roster.learn(wants, [lease_of(want.queue_id, n) for want in wants for n in range(want.seats)])
        for want in wants:
            for _ in range(want.seats):
                roster.charge(want.queue_id, cost_ms[want.queue_id])
            total[want.queue_id] += want.seats

    assert total["quick"] == pytest.approx(10 * total["slow"], rel=0.25)


def test_jobs_in_hand_count_by_what_such_jobs_took(clock: StandingClock) -> None:
    roster = roster_of(("a", "p-a", 0), ("b", "p-b", 0))
    roster.charge("a", 100)
    roster.charge("b", 100)

    assert [w.queue_id for w in roster.plan(1, [lease_of("a")])] == ["b"]
    assert [w.queue_id for w in roster.plan(1, [lease_of("b")])] == ["a"]


def test_time_without_work_earns_no_credit(clock: StandingClock) -> None:
    roster = roster_of(("busy", "p-busy", 0), ("idle", "p-idle", 0))
    roster.learn_gated(Want("idle", 1), 0)
    for _ in range(100):
        serve(roster, 1, ms=100)

    roster.touch("idle")
    total = sum((serve(roster, 1, ms=100) for _ in range(20)), Counter())

    assert total == {"busy": 10, "idle": 10}


def test_a_project_with_many_queues_gets_no_more_than_one_with_a_single_queue() -> None:
    roster = roster_of(("only", "small", 0), *[(f"q{i:02}", "big", 0) for i in range(40)])

    total = sum((serve(roster, 1, ms=10) for _ in range(200)), Counter())

    assert total["only"] == pytest.approx(100, abs=5)


def test_old_debts_fade(clock: StandingClock) -> None:
    roster = roster_of(("a", "p-a", 0), ("b", "p-b", 0))
    roster.charge("a", 16_000)
    roster.plan(1)
    clock.now += 5 * HALF_LIFE_S
    roster.plan(1)

    roster.charge("b", 1_000)

    assert [w.queue_id for w in roster.plan(1)] == ["a"]


def test_a_claim_from_the_head_that_brings_less_than_asked_means_the_queue_is_dry() -> None:
    roster = roster_of(("a", "p", 0))

    roster.learn(roster.plan(5), [lease_of("a")])

    assert not roster
    assert roster.plan(5) == []


def test_a_claim_from_further_back_that_brings_less_looks_at_the_head_before_the_queue_is_dry(
    clock: StandingClock,
) -> None:
    roster = roster_of(("a", "p", 0))
    roster.learn(roster.plan(1), [lease_of("a", 1)])
    from_behind = roster.plan(2)
    roster.learn(from_behind, [lease_of("a", 2)])

    from_head = roster.plan(2)

    assert from_behind[0].position != HEAD
    assert from_head[0].position == HEAD
    roster.learn(from_head, [])
    assert not roster


def test_a_claim_goes_on_behind_the_last_one(clock: StandingClock) -> None:
    roster = roster_of(("a", "p", 0))

    roster.learn(roster.plan(2), [lease_of("a", 1, priority=4), lease_of("a", 2, priority=3)])

    [want] = roster.plan(2)
    assert want.position == (-3, "2026-01-01 00:00:02+00", "job-2")


def test_the_head_is_looked_at_again_every_quarter_of_a_second(clock: StandingClock) -> None:
    roster = roster_of(("a", "p", 0))
    roster.learn(roster.plan(1), [lease_of("a", 1)])
    clock.now += HEAD_EVERY_S - 0.01
    assert roster.plan(1)[0].position != HEAD

    clock.now += 0.01

    assert roster.plan(1)[0].position == HEAD


def test_a_queue_that_gave_all_that_was_asked_for_is_known_to_have_work_until_it_gives_less() -> None:
    roster = roster_of(("a", "p", 0), ("b", "p", 0))
    assert roster.full() == []

    serve(roster, 10)
    assert sorted(roster.full()) == ["a", "b"]

    roster.learn([Want("a", 3)], [lease_of("a", n) for n in range(2)])
    assert roster.full() == ["b"]


def test_positions_of_several_queues_do_not_mix(clock: StandingClock) -> None:
    roster = roster_of(("a", "p", 0), ("b", "q", 0))
    wants = [Want("a", 1), Want("b", 2)]

    roster.learn(wants, [lease_of("b", 3), lease_of("a", 1), lease_of("b", 4)])

    assert {w.queue_id: w.position.job_id for w in roster.plan(4)} == {"a": "job-1", "b": "job-4"}


def test_a_dry_queue_that_is_touched_has_work_again_from_its_head() -> None:
    roster = roster_of(("a", "p", 0))
    roster.learn(roster.plan(5), [])

    assert roster.touch("a")

    assert roster.plan(3) == [Want("a", 3, HEAD)]


def test_a_queue_never_heard_of_can_not_be_touched() -> None:
    roster = Roster()

    assert not roster.touch("a")
    assert not roster


def test_a_queue_the_database_no_longer_names_is_left_alone_and_keeps_its_history() -> None:
    roster = roster_of(("a", "p", 0), ("b", "p", 0))

    roster.refresh([("b", "p", 0, False)])

    assert [w.queue_id for w in roster.plan(4)] == ["b"]
    assert roster.touch("a")


def test_a_queue_whose_priority_changed_moves_to_its_new_band() -> None:
    roster = roster_of(("a", "p", 0), ("b", "p", 0))

    roster.refresh([("a", "p", 7, False), ("b", "p", 0, False)])

    assert serve(roster, 20) == {"a": 18, "b": 2}


def test_time_of_a_queue_never_heard_of_is_not_counted() -> None:
    roster = roster_of(("a", "p", 0))

    roster.charge("gone", 10**9)

    assert roster.plan(1) == [Want("a", 1, HEAD)]


def test_planning_over_a_thousand_queues_is_quick() -> None:
    roster = roster_of(*[(f"q{i}", f"p{i % 50}", i % 3) for i in range(1_000)])

    began = time.process_time()
    for _ in range(20):
        serve(roster, 50)

    assert (time.process_time() - began) / 20 < 0.02


def test_a_gated_queue_is_asked_again_as_long_as_it_gives_something() -> None:
    roster = Roster()
    roster.refresh([("gated", "p", 0, True), ("plain", "p", 0, False)])
    want = next(want for want in roster.plan(10) if want.queue_id == "gated")
    assert want.is_gated

    roster.learn_gated(want, 1)
    assert "gated" in {want.queue_id for want in roster.plan(10)}

    roster.learn_gated(want, 0)
    assert "gated" not in {want.queue_id for want in roster.plan(10)}


def test_a_queue_at_its_limit_is_asked_again_when_it_may_have_room_from_where_it_was_left(clock: StandingClock) -> None:
    roster = roster_of(("a", "p", 0))
    roster.learn(roster.plan(10), at_limit("a", 1, 2, 3))

    assert not roster, "nothing is to be had before one of its jobs ends"
    assert roster.touch("a")
    [want] = roster.plan(10)
    assert want.position.job_id == "job-3", "what lies before is dead entries"

    clock.now += HEAD_EVERY_S
    assert roster.plan(10)[0].position == HEAD


def test_a_limited_queue_that_gave_less_than_it_might_has_run_dry(clock: StandingClock) -> None:
    roster = roster_of(("a", "p", 0))
    roster.learn(roster.plan(10), at_limit("a", 1, 2, 3)[:2])

    assert not roster
    assert roster.touch("a")
    assert roster.plan(10)[0].position == HEAD
