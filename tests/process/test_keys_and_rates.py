"""Limits per concurrency key and rates over several workers, one of which is killed again and again."""

from __future__ import annotations

import contextlib
from datetime import datetime
from uuid import UUID

import pytest
from django.db import connection

from jobs.models import Job, JobExecution
from queues.models import Queue
from tests.factories import make_jobs
from tests.process.test_storm import storm
from tests.processes import scheduler, worker
from tests.sizes import long
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

KEYS, EACH, LIMIT = 6, 30, 2


def overlaps() -> dict[str, int]:
    """For each key the most attempts in flight at one moment, from claim to end, as recorded."""
    keys = dict(Job.objects.values_list("pk", "concurrency_key"))
    moments: list[tuple[datetime, int, UUID]] = []
    for job_id, claimed_at, finished_at in JobExecution.objects.values_list("job_id", "claimed_at", "finished_at"):
        assert finished_at is not None
        moments += [(claimed_at, 1, job_id), (finished_at, -1, job_id)]
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    for _, step, job_id in sorted(moments):
        key = str(keys[job_id])
        now[key] = now.get(key, 0) + step
        most[key] = max(most.get(key, 0), now[key])
    return most


@long
def test_no_key_ever_has_more_in_flight_than_its_queue_allows(committed_queue: Queue) -> None:
    Queue.objects.filter(pk=committed_queue.pk).update(max_concurrency_per_key=LIMIT, visibility_timeout_secs=3)
    for key in range(KEYS):
        make_jobs(committed_queue, EACH, "effect", payload={"ms": 20}, concurrency_key=f"k{key}", max_attempts=50)

    with contextlib.ExitStack() as stack:
        stack.enter_context(scheduler())
        weather = stack.enter_context(storm(lambda: worker("--concurrency", "8"), 4, 1.0))
        wait_until(lambda: Job.objects.filter(status="completed").count() == KEYS * EACH, timeout_s=120)

    print(f"\n{weather.kills} kills, largest overlaps {overlaps()}")
    assert set(overlaps().values()) == {LIMIT}


def test_a_rate_holds_over_all_workers_and_is_used(committed_queue: Queue) -> None:
    rate = 20
    Queue.objects.filter(pk=committed_queue.pk).update(rate_limit=rate, rate_period_secs=1)
    make_jobs(committed_queue, 120, "effect", payload={"ms": 1})

    with worker(), worker(), worker():
        wait_until(lambda: Job.objects.filter(status="completed").count() == 120, timeout_s=60)

    with connection.cursor() as cursor:
        cursor.execute(
            """select max(n), extract(epoch from max(claimed_at) - min(claimed_at))::float8
                 from (select claimed_at, count(*) over (order by claimed_at
                              range between current row and interval '1 second' following) as n
                         from job_executions) as windows"""
        )
        most, took_s = cursor.fetchone()
    print(f"\nat most {most} starts in any second, all in {took_s:.1f} s at {rate} a second")
    assert most <= 2 * rate  # a full bucket, and a second's refill
    assert took_s >= (120 - rate) / rate - 0.1
