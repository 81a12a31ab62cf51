"""The arrows in the code are those of the specification's table."""

from __future__ import annotations

import pytest

from jobs.states import ARROWS, ExecutionStatus, JobStatus, LogLevel

#: SPEC, section 3: from, to. "(new)" is no state; several sources stand in one line.
TABLE = """
(new) | scheduled
(new) | queued
scheduled | queued
queued | claimed
claimed | running
running | completed
running | failed
failed | scheduled
failed | dead_letter
claimed, running | scheduled
scheduled, claimed, running | dead_letter
queued, scheduled | cancelled
claimed, running | queued
claimed | scheduled
running | cancelled
failed, dead_letter, completed, cancelled | queued
"""
#: What we draw beyond it: jobs that are run again together with one they wait for, wait for it again.
BEYOND = """
dead_letter, completed, cancelled | scheduled
"""
STATES = "scheduled, queued, claimed, running, completed, failed, dead_letter, cancelled"


def arrows_of(table: str) -> set[tuple[str | None, str]]:
    found: set[tuple[str | None, str]] = set()
    for line in table.strip().splitlines():
        sources, target = line.split(" | ")
        found |= {(None if source == "(new)" else source, target) for source in sources.split(", ")}
    return found


def test_the_states_are_those_of_the_specification() -> None:
    assert [status.value for status in JobStatus] == STATES.split(", ")


def test_no_arrow_is_missing_and_none_is_added() -> None:
    in_code = {(source.value if source else None, target.value) for source, target in ARROWS}

    assert in_code - arrows_of(BEYOND) == arrows_of(TABLE)
    assert arrows_of(BEYOND) <= in_code


def test_what_is_beyond_the_table_is_drawn_by_requeue_alone() -> None:
    beyond = {(JobStatus(source), JobStatus(target)) for source, target in arrows_of(BEYOND) if source}

    assert {ARROWS[arrow] for arrow in beyond} == {"requeue"}


@pytest.mark.parametrize(
    ("verb", "count"), [("submit", 2), ("promote", 1), ("claim", 1), ("start", 1), ("cancel", 2), ("requeue", 7)]
)
def test_each_verb_draws_its_own_arrows(verb: str, count: int) -> None:
    assert list(ARROWS.values()).count(verb) == count


def test_every_other_arrow_is_drawn_by_settle() -> None:
    assert set(ARROWS.values()) == {"submit", "promote", "claim", "start", "cancel", "requeue", "settle"}


def test_no_state_is_a_dead_end_and_none_can_not_be_reached() -> None:
    assert {source for source, _ in ARROWS if source} == set(JobStatus)
    assert {target for _, target in ARROWS} == set(JobStatus)


def test_the_words_of_executions_and_log_lines_fit_their_columns() -> None:
    from jobs.models import Job, JobExecution, JobLog

    for values, model, field in [
        (JobStatus.values, Job, "status"),
        (ExecutionStatus.values, JobExecution, "status"),
        (LogLevel.values, JobLog, "level"),
    ]:
        assert max(map(len, values)) <= getattr(model._meta.get_field(field), "max_length", 0)
