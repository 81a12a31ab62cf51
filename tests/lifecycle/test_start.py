"""start: claimed -> running, sent along with other writes."""

from __future__ import annotations

import pytest

from jobs.decisions import Unbegun
from jobs.lease import Lease
from jobs.lifecycle.exchange import Handover, exchange
from queues.models import Queue
from tests.factories import claim_from, claim_one, end, lapse, make_job, make_jobs, reload

pytestmark = pytest.mark.django_db


def begin(*leases: Lease) -> None:
    exchange(Handover(begun=leases))


def test_a_prefetched_job_runs_from_then_on_under_the_same_lease(queue: Queue) -> None:
    job = make_job(queue)
    lease = claim_one(queue, starts=0)
    claimed = reload(job)

    begin(lease)

    running = reload(job)
    assert (claimed.status, running.status) == ("claimed", "running")
    assert (running.lease_token, running.lease_expires_at) == (claimed.lease_token, claimed.lease_expires_at)
    assert running.fencing_number == claimed.fencing_number


def test_many_start_together(queue: Queue) -> None:
    make_jobs(queue, 6)
    leases = claim_from(queue, 6, starts=0)

    begin(*leases[:4])

    assert [reload(lease.job_id).status for lease in leases] == ["running"] * 4 + ["claimed"] * 2


def test_a_job_that_runs_already_stays_as_it_is(queue: Queue) -> None:
    make_job(queue)
    lease = claim_one(queue)
    before = reload(lease.job_id)

    begin(lease)

    assert reload(lease.job_id).updated_at == before.updated_at


def test_a_lease_that_was_lost_starts_nothing(queue: Queue) -> None:
    make_job(queue)
    ghost = claim_one(queue, starts=0)
    end(ghost, Unbegun())
    current = claim_one(queue, starts=0)

    begin(ghost)

    after = reload(ghost.job_id)
    assert (after.status, str(after.lease_token)) == ("claimed", current.token)


def test_a_lease_that_ran_out_and_was_not_reaped_still_starts(queue: Queue) -> None:
    make_job(queue)
    lease = claim_one(queue, starts=0)
    lapse(lease)

    begin(lease)

    assert reload(lease.job_id).status == "running"
