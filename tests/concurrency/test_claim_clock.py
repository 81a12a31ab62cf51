"""A claim that has to wait inside its statement is stamped when it picks, not when it was sent."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.db import connection

from jobs.lease import Lease
from jobs.lifecycle.claim import Claim, Want
from jobs.lifecycle.claim_gated import claim_gated
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import ANY_TYPE, claim_from, make_job
from tests.races import wait_for_a_waiter
from tests.threads import Session, start_together

pytestmark = pytest.mark.django_db(transaction=True)


def clock() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("select clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def lock_what_both_claims_read() -> None:
    with connection.cursor() as cursor:
        cursor.execute("lock table circuit_breakers in access exclusive mode")


def claim_gated_one(queue: Queue) -> list[Lease]:
    want = Want(str(queue.pk), 1, is_gated=True)
    return claim_gated(Claim(str(uuid7()), [want], ANY_TYPE, 1), want).leases


@pytest.mark.parametrize("key", [None, "k"], ids=["plain", "gated"])
def test_a_claim_that_waits_begins_its_lease_when_it_picks(committed_queue: Queue, key: str | None) -> None:
    """Otherwise records would show jobs as overlapping that the claim saw end, and leases would be short."""
    Queue.objects.filter(pk=committed_queue.pk).update(visibility_timeout_secs=30)
    job = make_job(committed_queue, concurrency_key=key)
    claim = claim_gated_one if key else claim_from

    with Session() as holder:
        holder.open_transaction()
        holder(lock_what_both_claims_read)
        (claimer,) = start_together([lambda: claim(committed_queue)])
        wait_for_a_waiter()
        let_go = clock()
        holder.commit()
        (lease,) = claimer.result(30)

    claimed = Job.objects.get(pk=job.pk)
    assert lease.job_id == str(job.pk)
    assert claimed.locked_at is not None
    assert claimed.lease_expires_at is not None
    assert claimed.locked_at >= let_go
    assert (claimed.lease_expires_at - claimed.locked_at).total_seconds() == 30
