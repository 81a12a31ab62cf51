"""Many claimers at once: each job is claimed exactly once and none is forgotten."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial

import pytest

from jobs.decisions import Succeeded
from jobs.lease import Ending, Lease
from jobs.lifecycle.claim import HEAD, Claim, Position, Want, claim_jobs
from jobs.lifecycle.exchange import Handover, exchange
from jobs.models import Job, JobExecution
from orgs.models import Project
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import ANY_TYPE, claim_from, make_jobs, make_organization, make_project, make_queue
from tests.threads import Session, run_together

pytestmark = pytest.mark.django_db(transaction=True)

JOBS, QUEUES, CLAIMERS, SEATS = 20_000, 10, 8, 50


def claim_until_dry(queues: list[Queue], first: int) -> list[Lease]:
    """Claim from one queue after the other, each claimer beginning with another, until all were dry in one round."""
    worker_id, held, dry, turn = str(uuid7()), [], 0, first
    positions: dict[str, Position] = {}
    while dry < 2 * len(queues):
        queue_id = str(queues[turn % len(queues)].pk)
        turn += 1
        want = Want(queue_id, SEATS, positions.get(queue_id, HEAD))
        leases = claim_jobs(Claim(worker_id, [want], ANY_TYPE, SEATS))
        held += leases
        dry = 0 if leases else dry + 1
        if len(leases) == SEATS:
            positions[queue_id] = Position(-leases[-1].priority, leases[-1].run_at, leases[-1].job_id)
        else:
            positions.pop(queue_id, None)  # look at the head again: somebody may have skipped what is locked
    return held


def test_eight_claimers_claim_twenty_thousand_jobs_each_once_and_forget_none() -> None:
    project: Project = make_project(make_organization())
    queues = [make_queue(project, max_concurrency=None if n % 2 else JOBS) for n in range(QUEUES)]
    submitted = {str(job.id) for queue in queues for job in make_jobs(queue, JOBS // QUEUES)}
    assert len(submitted) == JOBS

    began = time.monotonic()
    hauls = run_together([partial(claim_until_dry, queues, n) for n in range(CLAIMERS)])
    took_s = time.monotonic() - began

    claimed = Counter(lease.job_id for haul in hauls for lease in haul)
    tokens = {lease.token for haul in hauls for lease in haul}
    rows = Job.objects.filter(status="running").values_list("lease_token", flat=True)
    print(
        f"\n{JOBS:,} jobs, {CLAIMERS} claimers: {len(claimed):,} claimed, {claimed.total() - len(claimed)} twice, "
        f"{JOBS - len(claimed)} forgotten; {JOBS / took_s:,.0f} a second; shares {[len(haul) for haul in hauls]}"
    )
    assert set(claimed) == submitted
    assert claimed.total() == JOBS
    assert {str(token) for token in rows} == tokens
    assert not Job.objects.exclude(status="running").exists()
    assert Job.objects.filter(fencing_number=1).count() == JOBS


def work(queue: Queue, worker_id: str) -> list[str]:
    """Claim, and hand over what was claimed with the next claim, until the queue is dry; what was completed."""
    done: list[str] = []
    leases: list[Lease] = []
    while True:
        endings = [Ending.of(lease, Succeeded(), worker_id, 1.0) for lease in leases]
        claim = Claim(worker_id, [Want(str(queue.pk), 7)], ANY_TYPE, 7)
        takeaway = exchange(Handover(endings=endings, claim=claim))
        assert takeaway.settled.lost == []
        done += takeaway.settled.statuses
        leases = takeaway.leases
        if not leases:
            return done


def test_workers_that_settle_and_claim_in_one_trip_complete_each_job_once(committed_queue: Queue) -> None:
    submitted = {str(job.id) for job in make_jobs(committed_queue, 2_000)}

    done = run_together([partial(work, committed_queue, str(uuid7())) for _ in range(6)])

    completed = Counter(job_id for part in done for job_id in part)
    assert set(completed) == submitted
    assert completed.total() == 2_000
    assert JobExecution.objects.filter(status="completed", attempt_number=1).count() == 2_000


def test_a_claim_does_not_wait_for_one_that_is_not_finished_and_takes_what_is_left(committed_queue: Queue) -> None:
    make_jobs(committed_queue, 10)
    with Session() as slow, Session() as quick:
        slow.open_transaction()
        taken = slow(partial(claim_from, committed_queue, 6))

        others = quick(partial(claim_from, committed_queue, 10), timeout_s=5)

        slow.rollback()
    assert (len(taken), len(others)) == (6, 4)
    assert {lease.job_id for lease in taken}.isdisjoint(lease.job_id for lease in others)
    assert len(claim_from(committed_queue, 10)) == 6
