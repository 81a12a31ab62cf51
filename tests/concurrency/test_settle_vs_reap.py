"""A late settle meets the reaper: whoever comes second finds the lease gone, in either order."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from jobs.decisions import Failed, Succeeded
from jobs.lease import Lease
from jobs.lifecycle.reap import reap_expired
from jobs.models import Job
from queues.models import Queue
from tests.factories import claim_from, claim_one, end, executions_of, lapse, make_job, make_jobs, reload
from tests.races import at_once, wait_for_a_waiter
from tests.threads import Session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def late(committed_queue: Queue) -> Lease:
    """A lease that has run out, of a job that has attempts left."""
    make_job(committed_queue)
    lease = claim_one(committed_queue)
    lapse(lease)
    return lease


def test_a_settle_that_comes_while_the_reaper_is_at_it_waits_and_finds_its_token_gone(late: Lease) -> None:
    with Session() as reaper, Session() as worker:
        reaper.open_transaction()
        assert reaper(partial(reap_expired, limit=10)) == 1
        settling = worker.begin(partial(end, late, Succeeded('"late"')))
        wait_for_a_waiter()

        reaper.commit()
        settled = settling.result(10)

    assert [lost.token for lost in settled.lost] == [late.token]
    assert (reload(late.job_id).status, reload(late.job_id).result) == ("scheduled", None)
    assert [execution.status for execution in executions_of(late.job_id)] == ["lost"]


def test_the_reaper_passes_over_a_job_that_is_being_settled(late: Lease) -> None:
    with Session() as reaper, Session() as worker:
        worker.open_transaction()
        assert worker(partial(end, late, Succeeded('"in time"'))).statuses == {late.job_id: "completed"}

        assert reaper(partial(reap_expired, limit=10)) == 0
        worker.commit()
        assert reaper(partial(reap_expired, limit=10)) == 0

    assert (reload(late.job_id).status, reload(late.job_id).result) == ("completed", "in time")
    assert [execution.status for execution in executions_of(late.job_id)] == ["completed"]


def test_a_settle_that_is_rolled_back_leaves_the_job_to_the_reaper(late: Lease) -> None:
    with Session() as worker:
        worker.open_transaction()
        worker(partial(end, late, Succeeded()))
        worker.rollback()

    assert reap_expired(limit=10) == 1
    assert [execution.status for execution in executions_of(late.job_id)] == ["lost"]


def test_of_settle_and_reap_at_the_same_moment_one_wins_and_there_is_one_record(committed_queue: Queue) -> None:
    make_jobs(committed_queue, 60, max_attempts=1)
    leases = claim_from(committed_queue, 60)
    for lease in leases:
        lapse(lease)

    def settle_all() -> list[Any]:
        return [end(lease, Failed("boom")) for lease in leases]

    settled, reaped = at_once(settle_all, lambda: sum(reap_expired(limit=3) for _ in range(40)))

    lost = sum(len(one.lost) for one in settled)
    assert lost == reaped
    assert set(Job.objects.values_list("status", flat=True)) == {"dead_letter"}
    for lease in leases:
        [execution] = executions_of(lease.job_id)
        assert str(execution.pk) == lease.token
        assert reload(lease.job_id).attempt_count == 1


def test_two_reapers_at_once_take_each_expired_job_once(committed_queue: Queue) -> None:
    make_jobs(committed_queue, 200)
    for lease in claim_from(committed_queue, 200):
        lapse(lease)

    counts = at_once(*[lambda: sum(reap_expired(limit=20) for _ in range(15))] * 3)

    assert sum(counts) == 200
    assert Job.objects.filter(status="scheduled", attempt_count=1).count() == 200
