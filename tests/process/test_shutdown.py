"""Workers and schedulers are told to stop: nothing is lost, no attempt is burned, everybody leaves by himself."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from functools import partial

import pytest
from django.db import connection

from jobs.lifecycle.cancel import cancel_job
from jobs.models import Job, JobExecution, Worker
from queues.models import Queue
from tests.factories import make_job, make_jobs
from tests.processes import scheduler, worker
from tests.sizes import size
from tests.waiting import wait_until

#: Rounds of stopping an idle worker and an idle scheduler, so many pairs beside each other.
TERM_ROUNDS, TERM_PAIRS = size("TERM_ROUNDS", suite=4, full=500), 4

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


def statuses() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("select status, count(*) from jobs group by status")
        return dict(cursor.fetchall())


def status_of(job: Job) -> str:
    return Job.objects.values_list("status", flat=True).get(pk=job.pk)


def test_running_jobs_finish_and_nothing_new_is_claimed_after_term(committed_queue: Queue) -> None:
    running = [make_job(committed_queue, "effect.polite", payload={"ms": 2_000}) for _ in range(2)]
    with worker("--concurrency", "2") as process:
        wait_until(lambda: statuses().get("running") == 2)
        make_jobs(committed_queue, 50, "effect")

        process.send(signal.SIGTERM)

        assert process.wait(10) == 0
    assert {status_of(job) for job in running} == {"completed"}
    assert statuses() == {"completed": 2, "queued": 50}
    assert not Job.objects.filter(status="queued").exclude(attempt_count=0).exists()
    assert Worker.objects.get().status == "stopped"


def test_prefetched_jobs_go_back_unused_at_term(committed_queue: Queue) -> None:
    make_jobs(committed_queue, 20_000)
    with worker() as process:
        wait_until(lambda: statuses().get("completed", 0) > 2_000)

        process.send(signal.SIGTERM)

        assert process.wait(10) == 0
    found = statuses()
    assert set(found) == {"completed", "queued"}
    assert sum(found.values()) == 20_000
    assert JobExecution.objects.count() == found["completed"]


@pytest.mark.parametrize("job_type", ["effect.polite", "effect"])
def test_job_longer_than_the_grace_is_interrupted_and_runs_elsewhere_at_once(
    committed_queue: Queue, job_type: str
) -> None:
    job = make_job(committed_queue, job_type, payload={"ms": 60_000})
    with worker(env={"APP_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "1"}) as process:
        wait_until(lambda: status_of(job) == "running")
        with worker(env={"APP_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "0"}) as other:
            wait_until(lambda: other.events("worker_started"))
            began = time.monotonic()
            process.send(signal.SIGTERM)

            assert process.wait(10) == 0
            assert time.monotonic() - began < 5
            wait_until(lambda: status_of(job) == "running", timeout_s=3, what="the other worker takes it")

    first = JobExecution.objects.get(job=job, fencing_number=1)
    assert (first.status, first.attempt_number) == ("interrupted", 1)
    assert Job.objects.get(pk=job.pk).attempt_count == 0


def test_second_term_gives_everything_back_at_once(committed_queue: Queue) -> None:
    job = make_job(committed_queue, "effect.polite", payload={"ms": 60_000})
    with worker(env={"APP_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "60"}) as process:
        wait_until(lambda: status_of(job) == "running")
        process.send(signal.SIGTERM)
        wait_until(lambda: process.events("worker_draining"))

        process.send(signal.SIGTERM)

        assert process.wait(10) == 0
    assert status_of(job) == "queued"
    assert Job.objects.get(pk=job.pk).attempt_count == 0


def test_draining_worker_still_hears_a_cancel(committed_queue: Queue) -> None:
    job = make_job(committed_queue, "effect.polite", payload={"ms": 60_000})
    with worker(env={"APP_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "60"}) as process:
        wait_until(lambda: status_of(job) == "running")
        process.send(signal.SIGTERM)
        wait_until(lambda: process.events("worker_draining"))

        cancel_job(job.pk, reason="no longer needed")

        wait_until(lambda: status_of(job) == "cancelled", timeout_s=3)
        assert process.wait(5) == 0


@pytest.mark.timeout(120 + 5 * TERM_ROUNDS)
def test_idle_processes_end_on_term_whenever_it_comes(committed_queue: Queue) -> None:
    rng = random.Random(7)
    slowest_s = 0.0
    for _ in range(TERM_ROUNDS // TERM_PAIRS):
        with contextlib.ExitStack() as stack:
            started = [
                (stack.enter_context(make()), event)
                for make, event in ((worker, "worker_started"), (scheduler, "scheduler_started"))
                for _ in range(TERM_PAIRS)
            ]
            for process, event in started:
                wait_until(partial(process.events, event), 30)
            for process, _ in started:
                time.sleep(rng.uniform(0.0, 0.5))  # the moment is what varies here, not a wait for a condition
                told_at = time.monotonic()
                process.send(signal.SIGTERM)
                assert process.wait(2) == 0
                slowest_s = max(slowest_s, time.monotonic() - told_at)
    print(f"\n{TERM_ROUNDS} rounds of a worker and a scheduler: the slowest ended in {slowest_s:.2f} s")


def test_once_runs_one_job_and_drain_runs_all(committed_queue: Queue) -> None:
    make_jobs(committed_queue, 3)

    with worker("--once") as once:
        assert once.wait(15) == 0
        assert statuses() == {"completed": 1, "queued": 2}
    with worker("--drain") as drain:
        assert drain.wait(15) == 0
        assert statuses() == {"completed": 3}
    with worker("--once") as nothing_to_do:
        assert nothing_to_do.wait(15) == 0


def test_jobs_of_unknown_types_are_left_for_workers_that_know_them(committed_queue: Queue) -> None:
    make_job(committed_queue, "from.the.next.release")
    make_job(committed_queue, "noop")

    with worker("--drain") as process:
        assert process.wait(15) == 0

    assert statuses() == {"completed": 1, "queued": 1}
    assert Job.objects.get(status="queued").attempt_count == 0


def test_buffer_goes_back_at_term_although_the_seats_are_busy(committed_queue: Queue) -> None:
    make_jobs(committed_queue, 400, "effect")
    make_jobs(committed_queue, 40, "effect.polite", payload={"ms": 3_000})
    with worker("--concurrency", "4") as process:
        wait_until(lambda: statuses().get("completed", 0) >= 400)
        wait_until(lambda: statuses().get("running", 0) == 4)
        process.send(signal.SIGTERM)
        wait_until(lambda: process.events("worker_draining"))

        wait_until(lambda: not statuses().get("claimed"), timeout_s=1)

        assert process.wait(10) == 0
    assert statuses()["completed"] <= 408
    assert not Job.objects.filter(status="queued").exclude(attempt_count=0).exists()


def test_log_lines_show_while_the_handler_runs_also_during_a_drain(committed_queue: Queue) -> None:
    job = make_job(committed_queue, "chatty", payload={"ms": 4_000})
    with worker() as process:
        wait_until(lambda: job.logs.exists(), timeout_s=5)
        process.send(signal.SIGTERM)
        before = job.logs.count()
        wait_until(lambda: job.logs.count() > before + 3, timeout_s=2)
        assert status_of(job) == "running"
        assert process.wait(10) == 0
