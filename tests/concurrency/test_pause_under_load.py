"""Pausing under load: not one claim of the queue is committed after the pause was answered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from jobs.decisions import Unbegun
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.models import Job
from queues.models import Queue
from queues.services import pause_queue, resume_queue
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, make_jobs
from tests.sizes import size
from tests.threads import start_together
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

CLAIMERS, PAUSES = 6, size("CLAIM_PAUSES", suite=10, full=25)


def claim_and_give_back(queue: Queue, is_over: Callable[[], bool], note: Callable[[], None]) -> None:
    while not is_over():
        leases = claim_from(queue, 3)
        if leases:
            note()
            settle([Ending.of(lease, Unbegun(), str(uuid7())) for lease in leases])


@pytest.mark.parametrize("max_concurrency", [None, 10], ids=["unlimited", "limited"])
def test_no_claim_is_committed_after_the_pause_was_answered(
    committed_queue: Queue, max_concurrency: int | None
) -> None:
    Queue.objects.filter(pk=committed_queue.pk).update(max_concurrency=max_concurrency)
    committed_queue.refresh_from_db()
    make_jobs(committed_queue, 50)
    over, claims = threading.Event(), [0]

    def note() -> None:
        claims[0] += 1

    racers = start_together([partial(claim_and_give_back, committed_queue, over.is_set, note)] * CLAIMERS)
    try:
        for _ in range(PAUSES):
            before = claims[0]
            wait_until(lambda before=before: claims[0] > before + 5, timeout_s=10, every_s=0.001)  # type: ignore[misc]
            pause_queue(committed_queue)
            fences = fencing_numbers()
            for _ in range(20):
                assert claim_from(committed_queue, 1) == []
            assert fencing_numbers() == fences
            resume_queue(committed_queue)
    finally:
        over.set()
    for racer in racers:
        racer.result(10)

    print(f"\n{PAUSES} pauses among {claims[0]} claims of {CLAIMERS} claimers")
    assert Job.objects.filter(status="queued", attempt_count=0).count() == 50


def fencing_numbers() -> dict[object, int]:
    """They rise with each claim that is committed, and with nothing else."""
    return dict(Job.objects.values_list("pk", "fencing_number"))
