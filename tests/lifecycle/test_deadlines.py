"""Deadlines: a job that may not begin any more is cancelled and says so; a failure behind its deadline is final."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from dlq.models import DeadLetter
from jobs.decisions import DEADLINE_PASSED, START_DEADLINE_PASSED, Failed
from jobs.lifecycle.claim import Claim, Want
from jobs.lifecycle.claim_gated import claim_gated
from jobs.lifecycle.expire import expire_late, late_ids
from jobs.lifecycle.reap import reap_expired
from jobs.lifecycle.requeue import requeue_job
from jobs.lifecycle.submit import NewJob, Parent, submit_job
from jobs.models import Job
from jobs.selectors.explain import explain
from queues.models import Queue
from scheduler_project.lib.errors import ValidationFailed
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.sql import database_now
from tests.factories import (
    ANY_TYPE,
    claim_from,
    claim_one,
    end,
    executions_of,
    lapse,
    make_due,
    make_job,
    make_queue,
    reload,
)

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NAMES = pytest.mark.parametrize(
    ("name", "reason"), [("start_deadline", START_DEADLINE_PASSED), ("deadline", DEADLINE_PASSED)]
)


def with_deadline(queue: Queue, name: str, at: datetime, **fields: Any) -> Job:
    """A job that has the deadline of that name."""
    return make_job(queue, **{name: at, **fields})


def pass_by(job: Job, name: str) -> None:
    """Let a deadline of the job have passed a second ago."""
    Job.objects.filter(pk=job.pk).update(**{name: Now() - timedelta(seconds=1)})


@NAMES
@pytest.mark.parametrize("delay_s", [0, 3_600])
def test_a_waiting_job_that_is_too_late_is_not_claimed_but_cancelled_with_the_reason(
    queue: Queue, name: str, reason: str, delay_s: int
) -> None:
    job = with_deadline(queue, name, database_now() + HOUR, delay_s=delay_s)
    other = with_deadline(queue, name, database_now() + HOUR, delay_s=delay_s)
    assert (expire_late(limit=10), late_ids(10)) == (0, [])
    pass_by(job, name)

    if not delay_s:
        assert [lease.job_id for lease in claim_from(queue, 5)] == [str(other.pk)]
    assert f"{name}_passed" in [found.code for found in explain(reload(job))]
    assert late_ids(10) == [str(job.pk)]
    assert expire_late(limit=10) == 1

    late = reload(job)
    assert (late.status, late.error_message, late.attempt_count) == ("cancelled", reason, 0)
    assert reason in explain(late)[0].message
    assert reload(other).status in ("scheduled", "claimed", "running")
    assert executions_of(job) == []


def test_a_gated_queue_hands_out_no_late_job_either() -> None:
    queue = make_queue(rate_limit=100, rate_period_secs=1)
    late, fine = make_job(queue), make_job(queue)
    pass_by(late, "deadline")
    want = Want(str(queue.pk), 5, is_gated=True)

    taken = claim_gated(Claim(str(uuid7()), [want], ANY_TYPE, 0), want)

    assert [lease.job_id for lease in taken.leases] == [str(fine.pk)]


def test_a_job_that_has_begun_in_time_is_retried_whatever_its_start_deadline(queue: Queue) -> None:
    job = make_job(queue, start_deadline=database_now() + HOUR)
    end(claim_one(queue), Failed("x"))
    pass_by(job, "start_deadline")
    make_due(job)

    assert expire_late(limit=10) == 0
    assert claim_one(queue).attempt == 2


def test_a_failure_whose_retry_would_be_behind_the_deadline_is_final(queue: Queue) -> None:
    soon = make_job(queue, deadline=database_now() + timedelta(seconds=30), max_attempts=9)
    end(claim_one(queue), Failed("x", retry_after_s=60))
    later = make_job(queue, deadline=database_now() + HOUR, max_attempts=9)
    end(claim_one(queue), Failed("x", retry_after_s=60))

    assert (reload(soon).status, reload(later).status) == ("dead_letter", "scheduled")
    assert DeadLetter.objects.get(job=soon).failure_reason == DEADLINE_PASSED


def test_a_lost_attempt_behind_the_deadline_is_final(queue: Queue) -> None:
    job = make_job(queue, deadline=database_now() + HOUR)
    lapse(claim_one(queue))
    pass_by(job, "deadline")

    assert expire_late(limit=10) == 0, "a running attempt is left alone"
    reap_expired(limit=10)

    assert DeadLetter.objects.get(job=job).failure_reason == DEADLINE_PASSED


def test_a_job_that_waits_for_its_retry_when_the_deadline_passes_is_cancelled(queue: Queue) -> None:
    job = make_job(queue, deadline=database_now() + HOUR)
    end(claim_one(queue), Failed("x"))
    pass_by(job, "deadline")

    assert expire_late(limit=10) == 1
    assert (reload(job).status, reload(job).attempt_count) == ("cancelled", 1)


def test_what_waits_for_a_late_job_hears_of_it(queue: Queue) -> None:
    parent = make_job(queue, start_deadline=database_now() + HOUR)
    child = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(parent.pk)]))
    pass_by(parent, "start_deadline")

    expire_late(limit=10)

    assert reload(child.id).status == "cancelled"


def test_whoever_requeues_a_late_job_wants_it_without_deadlines(queue: Queue) -> None:
    job = make_job(queue, start_deadline=database_now() + HOUR, deadline=database_now() + 2 * HOUR)
    pass_by(job, "start_deadline")
    expire_late(limit=10)

    requeue_job(job.pk, by=None)

    assert (reload(job).start_deadline, reload(job).deadline) == (None, None)
    assert claim_one(queue).job_id == str(job.pk)


@pytest.mark.parametrize("name", ["start_deadline", "deadline"])
def test_a_deadline_that_can_not_be_is_refused_by_its_name(queue: Queue, name: str) -> None:
    now = database_now()
    for run_at, at in [(now + HOUR, now + HOUR / 2), (None, datetime(2030, 1, 1)), (None, now.replace(year=1969))]:
        with pytest.raises(ValidationFailed, match=f"^{name}: must be "):
            with_deadline(queue, name, at, run_at=run_at)
