"""What each verdict means for the job, by attempts used and the retry rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.decisions import (
    EXHAUSTED,
    MAX_ERROR_CHARS,
    MAX_SNOOZE_S,
    MAX_STACK_CHARS,
    WORKER_LOST,
    Cancelled,
    Decision,
    Discarded,
    Failed,
    Interrupted,
    Lost,
    Snoozed,
    Succeeded,
    Unbegun,
    Verdict,
    decide,
    storable,
)
from jobs.states import ARROWS, JobStatus
from queues.backoff import RetryRule

THREE = RetryRule("fixed", base_delay_ms=7_000, max_attempts=3, jitter=0.0)


def test_success_completes_the_job_with_its_result() -> None:
    assert decide(Succeeded('{"a":1}'), 0) == Decision("completed", "completed", result_json='{"a":1}')


def test_success_without_a_result_stores_none() -> None:
    assert decide(Succeeded(), 0) == Decision("completed", "completed")


def test_failure_with_attempts_left_is_tried_again_after_the_rules_delay() -> None:
    decision = decide(Failed("boom", "stack"), 1, THREE)

    assert decision == Decision("scheduled", "failed", used=1, delay_s=7.0, error="boom", stack="stack")


def test_failure_of_the_last_attempt_is_buried_as_exhausted() -> None:
    decision = decide(Failed("boom"), 2, THREE)

    assert (decision.status, decision.outcome, decision.used, decision.reason) == (
        "dead_letter",
        "failed",
        1,
        EXHAUSTED,
    )


def test_failure_beyond_the_last_attempt_is_buried_too() -> None:
    assert decide(Failed("boom"), 7, THREE).status == "dead_letter"


def test_a_single_attempt_is_the_last_one() -> None:
    assert decide(Failed("boom"), 0, RetryRule(max_attempts=1)).status == "dead_letter"


@pytest.mark.parametrize(
    ("asked_s", "waited_s"),
    [(0, 0), (90, 90), (-5, 0), (1e12, MAX_SNOOZE_S), (float("inf"), MAX_SNOOZE_S), (float("nan"), 0)],
)
def test_retry_after_overrides_the_rules_delay_within_bounds(asked_s: float, waited_s: float) -> None:
    decision = decide(Failed("later", None, asked_s), 0, THREE)

    assert (decision.status, decision.delay_s) == ("scheduled", waited_s)


def test_retry_after_does_not_save_the_last_attempt() -> None:
    assert decide(Failed("later", None, 1), 2, THREE).status == "dead_letter"


@pytest.mark.parametrize(("asked_s", "waited_s"), [(30, 30), (-1, 0), (1e12, MAX_SNOOZE_S), (float("nan"), 0)])
def test_snooze_comes_back_later_without_using_an_attempt(asked_s: float, waited_s: float) -> None:
    decision = decide(Snoozed(asked_s), 2, THREE)

    assert decision == Decision("scheduled", "snoozed", used=0, delay_s=waited_s)


def test_discard_fails_for_good_without_a_dead_letter() -> None:
    assert decide(Discarded("malformed"), 0, THREE) == Decision("failed", "failed", error="malformed")


def test_cancel_ends_the_job_as_cancelled() -> None:
    assert decide(Cancelled("on request"), 0, THREE) == Decision("cancelled", "cancelled", error="on request")


def test_interruption_gives_the_job_back_with_its_attempt_and_a_record() -> None:
    assert decide(Interrupted(), 2, THREE) == Decision("queued", "interrupted", used=0)


def test_a_job_that_never_began_goes_back_without_a_record() -> None:
    assert decide(Unbegun(), 2, THREE) == Decision("queued", None, used=0)


def test_a_lost_lease_uses_an_attempt_and_is_tried_again_by_the_rule() -> None:
    decision = decide(Lost(), 0, THREE)

    assert (decision.status, decision.outcome, decision.used, decision.delay_s) == ("scheduled", "lost", 1, 7.0)


def test_the_last_lost_lease_is_buried_with_its_own_reason() -> None:
    decision = decide(Lost(), 2, THREE)

    assert (decision.status, decision.reason) == ("dead_letter", WORKER_LOST)
    assert decision.reason != EXHAUSTED


@pytest.mark.parametrize(
    "verdict",
    [Succeeded(), Failed("x"), Snoozed(1), Discarded("x"), Cancelled("x"), Interrupted(), Unbegun(), Lost()],
)
@pytest.mark.parametrize("used", [0, 1, 2, 3])
def test_no_decision_leads_where_settle_draws_no_arrow(verdict: Verdict, used: int) -> None:
    target = JobStatus(decide(verdict, used, THREE).status)

    assert "settle" in {verb for (_, to), verb in ARROWS.items() if to is target}


@pytest.mark.parametrize("verdict", [Failed("x" * 50_000), Discarded("x" * 50_000), Cancelled("x" * 50_000)])
def test_long_errors_are_cut_and_say_so(verdict: Verdict) -> None:
    error = decide(verdict, 0).error

    assert error is not None
    assert len(error) <= MAX_ERROR_CHARS
    assert "characters cut" in error


def test_long_stacks_are_cut_to_their_own_limit() -> None:
    stack = decide(Failed("x", "top" + "y" * 200_000 + "bottom"), 0).stack

    assert stack is not None
    assert MAX_ERROR_CHARS < len(stack) <= MAX_STACK_CHARS
    assert stack.startswith("top")
    assert stack.endswith("bottom")


def test_text_of_exactly_the_limit_is_kept() -> None:
    assert storable("x" * 1_000, 1_000) == "x" * 1_000


def test_what_postgresql_can_not_store_is_replaced() -> None:
    assert storable("a\0b", 100) == "a\N{REPLACEMENT CHARACTER}b"
    assert storable("a\ud83db", 100) == "a?b"


@given(st.text(st.characters(), max_size=400), st.integers(100, 300))
def test_storable_text_is_always_encodable_and_within_its_limit(text: str, limit: int) -> None:
    stored = storable(text, limit)

    stored.encode()
    assert "\0" not in stored
    assert len(stored) <= limit
