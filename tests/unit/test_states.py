"""The questions that can be asked of the arrows."""

from __future__ import annotations

import pytest

from jobs.states import ARROWS, IN_FLIGHT, TERMINAL, WAITING, JobStatus, can_go, sources_of


def test_every_state_is_waiting_in_flight_or_terminal_and_only_one_of_them() -> None:
    assert sorted([*WAITING, *IN_FLIGHT, *TERMINAL]) == sorted(JobStatus)


def test_an_arrow_can_be_gone_and_its_reverse_can_not() -> None:
    assert can_go(JobStatus.QUEUED, JobStatus.CLAIMED)
    assert can_go(None, JobStatus.SCHEDULED)
    assert not can_go(JobStatus.COMPLETED, JobStatus.RUNNING)
    assert not can_go(None, JobStatus.RUNNING)


@pytest.mark.parametrize("status", JobStatus)
def test_no_state_leads_to_itself(status: JobStatus) -> None:
    assert not can_go(status, status)


@pytest.mark.parametrize("status", sorted(TERMINAL - {JobStatus.FAILED}))
def test_an_ended_job_leaves_its_state_only_by_requeue(status: JobStatus) -> None:
    verbs = {verb for (source, _), verb in ARROWS.items() if source is status}

    assert verbs == {"requeue"}


def test_the_sources_of_a_verb_stand_in_the_order_of_a_jobs_life() -> None:
    assert sources_of("cancel") == [JobStatus.SCHEDULED, JobStatus.QUEUED]
    assert sources_of("requeue") == [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.CANCELLED]
    assert sources_of("claim") == [JobStatus.QUEUED]


def test_the_sources_of_a_verb_can_be_asked_for_one_target() -> None:
    assert sources_of("settle", JobStatus.CANCELLED) == [JobStatus.RUNNING]
    assert sources_of("settle", JobStatus.QUEUED) == [JobStatus.CLAIMED, JobStatus.RUNNING]


def test_a_verb_that_makes_jobs_has_no_sources_and_an_unknown_one_neither() -> None:
    assert sources_of("submit") == []
    assert sources_of("vanish") == []
