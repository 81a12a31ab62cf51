"""Pausing is exact: no claim is under way when it is answered, and none gets through after."""

from __future__ import annotations

import threading

import pytest
from django.db import transaction

from queues.models import Queue
from queues.services import pause_queue, resume_queue
from tests.factories import claim_from, make_jobs
from tests.races import at_once, wait_for_a_waiter
from tests.threads import start_together

LIMITS = pytest.mark.parametrize("max_concurrency", [None, 5], ids=["unlimited", "limited"])


@pytest.fixture
def queue(committed_queue, max_concurrency):
    Queue.objects.filter(pk=committed_queue.pk).update(max_concurrency=max_concurrency)
    committed_queue.refresh_from_db()
    make_jobs(committed_queue, 20)
    return committed_queue


@LIMITS
def test_pausing_waits_for_a_claim_under_way(queue):
    claimed, go_on = threading.Event(), threading.Event()

    def claim_slowly() -> int:
        with transaction.atomic():
            leases = claim_from(queue, 1)
            claimed.set()
            go_on.wait(10)
        return len(leases)

    [claiming] = start_together([claim_slowly])
    assert claimed.wait(10)
    [pausing] = start_together([lambda: pause_queue(queue)])
    wait_for_a_waiter()
    assert pausing.is_alive()
    go_on.set()
    assert claiming.result() == 1
    assert pausing.result().is_paused
    assert claim_from(queue, 1) == []


@LIMITS
def test_no_claim_gets_through_once_pausing_has_begun(queue):
    begun, go_on = threading.Event(), threading.Event()

    def pause_slowly() -> None:
        with transaction.atomic():
            pause_queue(queue)
            begun.set()
            go_on.wait(10)

    [pausing] = start_together([pause_slowly])
    assert begun.wait(10)
    assert claim_from(queue, 5) == []
    go_on.set()
    pausing.result()
    assert claim_from(queue, 5) == []
    resume_queue(queue)
    assert len(claim_from(queue, 5)) == 5


@LIMITS
def test_pauses_and_claims_do_not_block_each_other_for_good(queue):
    def toggle() -> None:
        for _ in range(10):
            pause_queue(queue)
            resume_queue(queue)

    def claim() -> int:
        return sum(len(claim_from(queue, 1)) for _ in range(10))

    outcomes = at_once(toggle, claim, toggle, claim)

    assert all(outcome is None or isinstance(outcome, int) for outcome in outcomes), outcomes
