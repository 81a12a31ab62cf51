"""Clients cancel the same jobs in random orders while workers claim and settle and the reaper runs: no deadlock."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from jobs.decisions import Failed, Succeeded, Unbegun, Verdict
from jobs.lease import Ending, Lease
from jobs.lifecycle.cancel import cancel_jobs
from jobs.lifecycle.claim import Claim, Want
from jobs.lifecycle.exchange import Handover, exchange
from jobs.lifecycle.promote import promote_due
from jobs.lifecycle.reap import reap_expired
from jobs.models import Job, JobExecution
from jobs.states import TERMINAL
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import ANY_TYPE, make_jobs
from tests.threads import start_together

pytestmark = pytest.mark.django_db(transaction=True)

VERDICTS: list[Verdict] = [Succeeded(), Failed("boom", None, 0.0), Unbegun()]
JOBS, CANCELLED, CLIENTS, WORKERS, ROUNDS = 1_000, 500, 4, 4, 4


def work(queue: Queue, seed: int, is_over: Callable[[], bool]) -> int:
    """Claim, end in all kinds of ways, some not at all, until told to stop; how many ends were written."""
    chance, worker_id, written = random.Random(seed), str(uuid7()), 0
    held: list[Lease] = []
    while not is_over():
        chance.shuffle(held)
        ended, held = held[: len(held) // 2 + 1], held[len(held) // 2 + 1 :]
        endings = [Ending.of(lease, chance.choice(VERDICTS), worker_id, 1.0) for lease in ended]
        claim = Claim(worker_id, [Want(str(queue.pk), 20)], ANY_TYPE, 10)
        takeaway = exchange(Handover(endings=endings, begun=held[:3], claim=claim))
        written += len(takeaway.settled.statuses)
        held = (held + takeaway.leases)[-60:]  # the rest is forgotten, as by a worker that died
    return written


def reap(is_over: Callable[[], bool]) -> int:
    """As two schedulers might at once: forget leases, reap, promote."""
    reaped = 0
    while not is_over():
        with transaction.atomic():
            held = Job.objects.in_flight().filter(fencing_number__gte=3).order_by("id")
            ids = held.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True)[:30]
            Job.objects.filter(pk__in=list(ids)).update(lease_expires_at=Now())
        reaped += reap_expired(limit=50)
        promote_due(limit=200)
    return reaped


def cancel_all(ids: list[UUID], seed: int) -> dict[UUID, str]:
    """Cancel in an order of one's own, in a few calls; what was answered."""
    mine = list(ids)
    random.Random(seed).shuffle(mine)
    answers: dict[UUID, str] = {}
    for start in range(0, len(mine), 125):
        answers |= cancel_jobs(mine[start : start + 125], reason="all of them")
    return answers


def deadlocks() -> int:
    """How many the server has broken up in this database."""
    with connection.cursor() as cursor:
        cursor.execute("select deadlocks from pg_stat_database where datname = current_database()")
        return int(cursor.fetchone()[0])


def test_nobody_meets_a_deadlock_and_what_was_cancelled_stays_so(committed_queue: Queue) -> None:
    asked: set[UUID] = set()
    before = deadlocks()
    for round_ in range(ROUNDS):
        ids = [job.id for job in make_jobs(committed_queue, JOBS, max_attempts=3)]
        over = threading.Event()
        others: list[Callable[[], Any]] = [partial(work, committed_queue, n, over.is_set) for n in range(WORKERS)]
        others += [partial(reap, over.is_set)] * 2
        clients: list[Callable[[], Any]] = [
            partial(cancel_all, ids[:CANCELLED], round_ * 10 + seed) for seed in range(CLIENTS)
        ]
        racers = start_together([*others, *clients])
        try:
            for racer in racers[len(others) :]:
                asked |= set(racer.result(60))
        finally:
            over.set()
        counts = [racer.result(60) for racer in racers[: len(others)]]

        assert sum(counts[:WORKERS]) > 0

    assert deadlocks() == before
    _let_everything_end(committed_queue)
    statuses = dict(Job.objects.values_list("pk", "status"))
    assert set(statuses.values()) <= TERMINAL
    assert {statuses[id_] for id_ in asked} == {"cancelled"}
    assert len(asked) > ROUNDS * CANCELLED / 2
    assert Job.objects.filter(status="cancelled", completed_at=None).count() == 0
    doubles = JobExecution.objects.count() - JobExecution.objects.values("job_id", "fencing_number").distinct().count()
    assert doubles == 0


def _let_everything_end(queue: Queue) -> None:
    """Leases lapse, retries come due, and one worker finishes the rest."""
    worker_id = str(uuid7())
    while Job.objects.exclude(status__in=sorted(TERMINAL)).exists():
        Job.objects.in_flight().update(lease_expires_at=Now())
        reap_expired(limit=10_000)
        Job.objects.filter(status="scheduled").update(run_at=Now())
        promote_due(limit=10_000)
        leases = exchange(Handover(claim=Claim(worker_id, [Want(str(queue.pk), 5_000)], ANY_TYPE, 5_000))).leases
        if leases:
            exchange(Handover(endings=[Ending.of(lease, Succeeded(), worker_id, 1.0) for lease in leases]))
