"""Requeue and discard at the same moment: each dead job is decided once."""

from __future__ import annotations

from functools import partial

import pytest

from dlq.models import DeadLetter
from dlq.services import discard
from jobs.decisions import Failed
from jobs.lease import Ending
from jobs.lifecycle.requeue import requeue_job
from jobs.lifecycle.settle import settle
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.errors import Conflict
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, executions_of, make_jobs, reload
from tests.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)

DEAD = 100


@pytest.fixture
def dead(committed_queue: Queue) -> list[Job]:
    """A hundred dead jobs."""
    make_jobs(committed_queue, DEAD, max_attempts=1)
    settle([Ending.of(lease, Failed("boom"), str(uuid7())) for lease in claim_from(committed_queue, DEAD)])
    return list(Job.objects.filter(status="dead_letter"))


def test_a_hundred_dead_jobs_are_each_requeued_or_discarded_once(dead: list[Job]) -> None:
    assert len(dead) == DEAD
    tally = {"requeued": 0, "discarded": 0}
    for number, job in enumerate(dead):
        letter = DeadLetter.objects.get(job_id=job.pk)
        requeue = partial(requeue_job, job.pk, by=None)
        deeds = [requeue, requeue]
        if number % 2:
            deeds.insert(number % 3, partial(discard, letter.pk, by=None))

        outcomes = at_once(*deeds)

        winners = [deed for deed, outcome in zip(deeds, outcomes, strict=True) if outcome is None]
        losers = [outcome for outcome in outcomes if outcome is not None]
        assert len(winners) == 1, outcomes
        assert all(isinstance(outcome, Conflict) for outcome in losers), outcomes
        letter.refresh_from_db()
        was_requeued = winners[0] is requeue
        assert letter.resolution_action == ("requeued" if was_requeued else "discarded")
        assert reload(job).status == ("queued" if was_requeued else "dead_letter")
        tally["requeued" if was_requeued else "discarded"] += 1

    print(f"\nrequeue race over {DEAD} dead jobs: {tally}")
    assert sum(tally.values()) == DEAD
    assert DeadLetter.objects.filter(resolved=False).count() == 0
    assert all(len(executions_of(job)) == 1 for job in dead)


def test_a_job_requeued_by_two_at_once_runs_once(dead: list[Job]) -> None:
    job = dead[0]

    at_once(*[partial(requeue_job, job.pk, by=None)] * 6)

    assert [lease.job_id for lease in claim_from(job.queue, 10)] == [str(job.pk)]
    assert reload(job).fencing_number == 2
