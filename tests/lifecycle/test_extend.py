"""Leases are extended for those who hold them, and one locked row costs the others nothing."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection

from jobs.lifecycle.extend import Held, extend_leases
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, make_jobs


@pytest.mark.django_db(transaction=True)
def test_row_that_somebody_has_locked_is_still_ours_and_the_others_are_extended(committed_queue: Queue) -> None:
    make_jobs(committed_queue, 3)
    leases = claim_from(committed_queue, 3)
    ends = dict(Job.objects.values_list("lease_token", "lease_expires_at"))

    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("select 1 from jobs where id = %s for update", [leases[1].job_id])
        kept = extend_leases([Held(lease.job_id, lease.token, 600) for lease in leases])
        other.rollback()

    assert kept == {lease.token: False for lease in leases}
    later = dict(Job.objects.values_list("lease_token", "lease_expires_at"))
    extended = [str(token) for token, at in later.items() if token and at and at > (ends[token] or at)]
    assert set(extended) == {leases[0].token, leases[2].token}


@pytest.mark.django_db
def test_lost_lease_is_missing_from_the_answer(queue: Queue) -> None:
    make_jobs(queue, 1)
    [lease] = claim_from(queue, 1)

    assert extend_leases([Held(lease.job_id, str(uuid7()), 60)]) == {}
