"""Limits over all workers: never above, and used in full; one queue never stands in another's way."""

from __future__ import annotations

import contextlib
import time

import pytest
from django.db import connection

from jobs.models import Job
from jobs.services.pausing import pause
from queues.models import Queue
from queues.services import resume_queue
from tests.factories import make_job, make_jobs, make_queue
from tests.processes import scheduler, worker
from tests.sizes import long, proved_by, size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


def largest_overlap() -> int:
    """The most handlers that ran at one moment, by their own traces."""
    with connection.cursor() as cursor:
        cursor.execute("select kind from test_effects order by at, kind")
        running = most = 0
        for (kind,) in cursor.fetchall():
            running += 1 if kind == "start" else -1
            most = max(most, running)
    return most


@proved_by("limits")
def test_limit_of_three_holds_over_all_workers_and_is_used_in_full(committed_queue: Queue) -> None:
    Queue.objects.filter(pk=committed_queue.pk).update(max_concurrency=3)
    make_jobs(committed_queue, 100, "effect", payload={"ms": 200})

    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(worker("--concurrency", "4"))
        wait_until(lambda: Job.objects.filter(status="completed").exists())
        began = time.monotonic()
        wait_until(lambda: Job.objects.filter(status="completed").count() == 100, timeout_s=60)
        took = time.monotonic() - began

    print(f"\nlargest overlap {largest_overlap()}, {took:.1f} s for 100 x 0.2 s by 3 seats")
    assert largest_overlap() == 3
    assert took < 100 * 0.2 / 3 * 1.5


def test_paused_or_full_queue_does_not_hide_another_ones_job(committed_queue: Queue) -> None:
    crowded = make_queue(committed_queue.project, priority=100, is_paused=True)
    make_jobs(crowded, 10_000, "sleep_60000", priority=100)
    with worker() as process:
        wait_until(lambda: process.events("worker_started"))

        first = make_job(committed_queue, priority=-100)
        wait_until(lambda: Job.objects.filter(pk=first.pk, status="completed").exists(), timeout_s=2)

        Queue.objects.filter(pk=crowded.pk).update(is_paused=False, max_concurrency=1)
        wait_until(lambda: Job.objects.filter(queue=crowded, status="running").exists())
        second = make_job(committed_queue, priority=-100)
        wait_until(lambda: Job.objects.filter(pk=second.pk, status="completed").exists(), timeout_s=2)


def test_high_queue_is_served_first_and_the_low_one_does_not_starve(committed_queue: Queue) -> None:
    high = make_queue(committed_queue.project, priority=10)
    make_jobs(committed_queue, 40, "effect", payload={"ms": 10})
    make_jobs(high, 400, "effect", payload={"ms": 10})

    with worker("--concurrency", "4"):
        wait_until(lambda: Job.objects.filter(queue=high, status="completed").count() >= 300, timeout_s=60)
        low_done = Job.objects.filter(queue=committed_queue, status="completed").count()

    assert 5 <= low_done < 40


PAUSES, PAUSE_WORKERS = size("PAUSES", suite=8, full=50), size("PAUSE_WORKERS", suite=3, full=8)


@pytest.mark.parametrize("ms", [0, pytest.param(5, marks=long), pytest.param(120, marks=long)])
def test_no_job_begins_after_the_pause_was_answered(committed_queue: Queue, ms: int) -> None:
    """Short jobs are claimed ahead of free seats, and those of a moment ago may still be on their way to the worker."""
    make_jobs(committed_queue, 30_000, "effect", payload={"ms": ms})
    late = 0
    with contextlib.ExitStack() as stack, connection.cursor() as cursor:
        for _ in range(PAUSE_WORKERS):
            stack.enter_context(worker("--concurrency", "4"))
        for _ in range(PAUSES):
            wait_until(lambda: Job.objects.filter(status__in=["claimed", "running"]).exists(), timeout_s=20)
            pause(committed_queue, reason="test")
            cursor.execute("select clock_timestamp()")
            answered = cursor.fetchone()[0]
            wait_until(lambda: not Job.objects.filter(status__in=["claimed", "running"]).exists(), timeout_s=20)
            cursor.execute("select count(*) from test_effects where kind = 'start' and at > %s", [answered])
            late += cursor.fetchone()[0]
            resume_queue(committed_queue)

    done = Job.objects.filter(status="completed").count()
    print(f"\n{late} starts after {PAUSES} pauses; {done} jobs of {ms} ms were done between them")
    assert late == 0
    assert done > PAUSES


def test_retries_and_scheduled_jobs_wait_for_the_resume(committed_queue: Queue) -> None:
    pause(committed_queue, reason="test")
    job = make_job(committed_queue, delay_s=0.2)
    with scheduler(), worker() as process:
        wait_until(lambda: Job.objects.filter(pk=job.pk, status="queued").exists())
        wait_until(lambda: process.events("worker_started"))

        resume_queue(committed_queue)

        wait_until(lambda: Job.objects.filter(pk=job.pk, status="completed").exists())
