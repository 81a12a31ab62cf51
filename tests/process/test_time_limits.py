"""Handlers that do not stop: their attempts end all the same, and their seats go on working."""

from __future__ import annotations

import time

import pytest

from jobs.lifecycle.cancel import cancel_job
from jobs.models import Job, JobExecution
from queues.models import Queue
from tests.factories import make_job, make_jobs, reload, status_of
from tests.processes import worker
from tests.sizes import long
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]
KINDS = pytest.mark.parametrize(
    "job_type",
    [pytest.param("blocked", marks=long), "stubborn", "stubborn.async", pytest.param("sleep_60000", marks=long)],
)


@KINDS
def test_a_handler_past_its_time_is_ended_and_its_seat_is_free(committed_queue: Queue, job_type: str) -> None:
    job = make_job(committed_queue, job_type, payload={"ms": 60_000}, timeout_s=1.5, max_attempts=1)
    with worker("--concurrency", "2") as process:
        wait_until(lambda: status_of(job) in ("claimed", "running"))
        began = time.monotonic()
        wait_until(lambda: status_of(job) == "dead_letter", timeout_s=6)
        took_s = time.monotonic() - began
        make_jobs(committed_queue, 20)
        wait_until(lambda: Job.objects.filter(job_type="noop", status="completed").count() == 20, timeout_s=10)
        assert process.popen.poll() is None

    [attempt] = JobExecution.objects.filter(job_id=job.pk)
    print(f"\n{job_type}: ended after {took_s:.1f} s of 1.5")
    assert attempt.status == "failed"
    assert "timeout" in (attempt.error_message or "")
    assert (attempt.duration_ms or 0) >= 1_500


@KINDS
def test_a_cancel_that_is_not_obeyed_is_forced(committed_queue: Queue, job_type: str) -> None:
    job = make_job(committed_queue, job_type, payload={"ms": 60_000})
    with worker("--concurrency", "2", env={"APP_WORKER_CANCEL_GRACE_SECS": "1"}) as process:
        wait_until(lambda: status_of(job) == "running")
        cancel_job(job.pk, reason="no longer wanted")
        wait_until(lambda: status_of(job) == "cancelled", timeout_s=8)
        make_job(committed_queue)
        wait_until(lambda: Job.objects.filter(job_type="noop", status="completed").exists(), timeout_s=10)
        assert process.popen.poll() is None
    assert JobExecution.objects.get(job_id=job.pk).status == "cancelled"


def test_a_worker_full_of_ghosts_ends_and_leaves_the_rest_to_others(committed_queue: Queue) -> None:
    stuck = [make_job(committed_queue, "stubborn", payload={"ms": 60_000}, timeout_s=0.5, max_attempts=1) for _ in "ab"]
    with worker("--concurrency", "2") as process:
        wait_until(lambda: process.events("too_many_ghosts"), timeout_s=15)
        assert process.wait(20) == 0
    assert [status_of(job) for job in stuck] == ["dead_letter"] * 2
    make_job(committed_queue)
    with worker() as fresh:
        wait_until(lambda: Job.objects.filter(job_type="noop", status="completed").exists())
        assert fresh.events("worker_started")


def test_a_result_that_comes_after_its_time_is_dropped(committed_queue: Queue) -> None:
    job = make_job(committed_queue, "blocked", payload={"ms": 4_000}, timeout_s=0.5, max_attempts=1)
    with worker("--concurrency", "2") as process:
        wait_until(lambda: status_of(job) == "dead_letter", timeout_s=8)
        before = reload(job).updated_at
        other = make_job(committed_queue, "sleep_3000")
        wait_until(lambda: status_of(other) == "completed", timeout_s=10)
        assert process.popen.poll() is None
    assert reload(job).updated_at == before
    assert JobExecution.objects.filter(job_id=job.pk).count() == 1
