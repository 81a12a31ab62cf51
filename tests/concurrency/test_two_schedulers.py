"""Two schedulers that both believe they lead: each due job is promoted once."""

from __future__ import annotations

from functools import partial

import pytest
from django.db.models.functions import Now

from jobs.lifecycle.promote import promote_due
from jobs.models import Job
from jobs.scheduler.duties import promote, reap
from jobs.scheduler.duties.base import Duty
from queues.models import Queue
from tests.factories import claim_from, make_jobs
from tests.threads import Session, run_together

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def due(committed_queue: Queue) -> Queue:
    """A queue with two thousand jobs that are due and not promoted yet."""
    make_jobs(committed_queue, 2_000, delay_s=3_600)
    Job.objects.update(run_at=Now())
    return committed_queue


def promote_all(limit: int) -> int:
    total = 0
    while count := promote_due(limit=limit):
        total += count
    return total


def until_nothing_is_left(duty: Duty) -> None:
    """A round ends after a while, with 0 if there is more to do."""
    while duty.run() == 0.0:
        pass


def test_of_four_sweeps_at_once_each_due_job_is_in_one(due: Queue) -> None:
    counts = run_together([partial(promote_all, limit) for limit in (37, 50, 61, 83)])

    assert sum(counts) == 2_000
    assert Job.objects.filter(status="queued", attempt_count=0, fencing_number=0).count() == 2_000


def test_the_duties_of_two_leaders_at_once_do_no_harm(due: Queue) -> None:
    run_together([partial(until_nothing_is_left, duty) for duty in (promote.duty(2.0), reap.duty(15.0)) * 2])

    assert Job.objects.filter(status="queued").count() == 2_000
    assert len({lease.job_id for lease in claim_from(due, 5_000)}) == 2_000


def test_a_sweep_does_not_wait_for_another_that_is_not_finished(due: Queue) -> None:
    with Session() as slow, Session() as quick:
        slow.open_transaction()
        assert slow(partial(promote_due, limit=1_500)) == 1_500

        assert quick(partial(promote_due, limit=1_500), timeout_s=5) == 500

        slow.rollback()
        assert quick(partial(promote_due, limit=5_000)) == 1_500
