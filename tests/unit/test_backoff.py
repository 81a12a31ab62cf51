"""Retry delays: the specification's table, caps, no overflow, jitter within its bounds."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.backoff import DEFAULT_RULE, RetryRule, delay_s

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parent.parent / "cases" / "api.json").read_text(encoding="utf-8"))
    if case["kind"] == "retry-delay"
}


def rule(strategy: Any = "exponential", **fields: Any) -> RetryRule:
    return RetryRule(strategy, **{"base_delay_ms": 10_000, "multiplier": 2.0, "jitter": 0.0, **fields})


def rule_of(policy: dict[str, Any]) -> RetryRule:
    """The rule that a policy of the cases stands for; there times are seconds and jitter is a share."""
    return RetryRule(
        strategy=policy["kind"],
        base_delay_ms=policy["base_delay"] * 1000,
        multiplier=policy.get("factor", 2),
        max_delay_ms=policy["max_delay"] * 1000,
        jitter=policy["jitter"],
    )


@pytest.mark.parametrize("case_id", ["delay-exponential-capped", "delay-linear"])
def test_delays_are_those_of_the_cases(case_id: str) -> None:
    request, expected = CASES[case_id]["request"], CASES[case_id]["expect"]["values"]

    delays = [delay_s(rule_of(request["policy"]), attempt) for attempt in request["attempts"]]

    assert delays == expected


def test_jitter_stays_in_the_range_of_the_case_and_differs_each_time() -> None:
    request, (low, high) = CASES["delay-jitter-bounds"]["request"], CASES["delay-jitter-bounds"]["expect"]["range"]
    [attempt] = request["attempts"]

    delays = [delay_s(rule_of(request["policy"]), attempt) for _ in range(request["samples"])]

    assert low <= min(delays)
    assert max(delays) <= high
    assert len(set(delays)) >= 100


def test_every_delay_case_is_run() -> None:
    assert set(CASES) == {"delay-exponential-capped", "delay-linear", "delay-jitter-bounds"}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("fixed", [10, 10, 10, 10]), ("linear", [10, 20, 30, 40]), ("exponential", [10, 20, 40, 80])],
)
def test_strategies_grow_as_the_specification_says(strategy: str, expected: list[float]) -> None:
    assert [delay_s(rule(strategy), count) for count in (1, 2, 3, 4)] == expected


@pytest.mark.parametrize("strategy", ["fixed", "linear", "exponential"])
def test_no_strategy_exceeds_the_cap(strategy: str) -> None:
    capped = rule(strategy, base_delay_ms=7_000, max_delay_ms=5_000)

    assert delay_s(capped, 1) == delay_s(capped, 9) == 5


def test_a_millionth_attempt_waits_the_cap_and_does_not_overflow() -> None:
    for strategy in ("linear", "exponential"):
        assert delay_s(rule(strategy, max_delay_ms=300_000), 10**6) == 300


def test_a_base_of_zero_never_waits_even_where_the_power_would_overflow() -> None:
    assert delay_s(rule(base_delay_ms=0, multiplier=100.0), 10**6) == 0


def test_a_multiplier_of_one_stays_at_the_base() -> None:
    assert delay_s(rule(multiplier=1.0), 10**6) == 10


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_waits_as_after_the_first_failure(count: int) -> None:
    assert delay_s(rule(), count) == delay_s(rule("linear"), count) == 10


def test_jitter_spreads_by_half_to_one_and_a_half() -> None:
    spread = [delay_s(rule(jitter=0.5), 1, random.Random(seed)) for seed in range(2_000)]

    assert 5 <= min(spread) < 5.1
    assert 14.9 < max(spread) <= 15


def test_the_default_retries_four_times_with_jitter() -> None:
    assert (DEFAULT_RULE.max_attempts, DEFAULT_RULE.jitter) == (5, 0.5)


@given(
    strategy=st.sampled_from(["fixed", "linear", "exponential"]),
    base=st.integers(0, 30 * 86_400_000),
    multiplier=st.floats(1.0, 100.0),
    cap=st.integers(0, 30 * 86_400_000),
    jitter=st.floats(0, 0.5),
    count=st.integers(-10, 10**7),
)
def test_any_delay_is_neither_negative_nor_above_its_cap_and_jitter(
    strategy: Any, base: int, multiplier: float, cap: int, jitter: float, count: int
) -> None:
    delay = delay_s(RetryRule(strategy, base, multiplier, cap, jitter=jitter), count)

    assert 0 <= delay <= cap / 1000 * 1.5 + 1e-6


@given(strategy=st.sampled_from(["linear", "exponential"]), count=st.integers(1, 10_000))
def test_delays_never_shrink_from_one_attempt_to_the_next(strategy: Any, count: int) -> None:
    growing = rule(strategy, max_delay_ms=10**9)

    assert delay_s(growing, count) <= delay_s(growing, count + 1)
