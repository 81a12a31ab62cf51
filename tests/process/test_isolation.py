"""Handlers in processes of their own: whatever becomes of them, it is their own job's failure and nobody else's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from django.db import connection

from jobs.lifecycle.cancel import cancel_job
from jobs.models import Job, JobExecution
from queues.models import Queue
from tests.factories import make_job, make_jobs, reload, status_of
from tests.processes import Process, is_alive, scheduler, worker
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]
ENV = {"APP_HANDLER_MODULES": "tests.work,tests.isolated_work"}


@contextmanager
def isolating(*args: str, **env: str) -> Iterator[Process]:
    """A worker whose nursery is ready."""
    with worker(*args, env={**ENV, **env}) as process:
        try:
            wait_until(lambda: process.events("nursery_ready"), timeout_s=60)
        except AssertionError:
            print(process.output())
            raise
        yield process


def error_of(job: Job) -> str:
    return str(JobExecution.objects.filter(job_id=job.pk).latest("fencing_number").error_message)


def effects(job: Job, kind: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from test_effects where job_id = %s and kind = %s", [job.pk, kind])
        return int(cursor.fetchone()[0])


def test_an_isolated_handler_says_and_returns_what_one_in_a_thread_would(committed_queue: Queue) -> None:
    first = make_job(committed_queue, "isolated", payload={"n": 1})
    failing = make_job(committed_queue, "isolated.fails", max_attempts=1)
    asynchronous = make_job(committed_queue, "isolated.async")
    with isolating("--concurrency", "1") as process:
        wait_until(lambda: not Job.objects.filter(completed_at=None).exists(), timeout_s=20)
        again = make_job(committed_queue, "isolated", payload={"n": 2})
        wait_until(lambda: status_of(again) == "completed")

    result: Any = reload(first).result
    assert (result["n"], result["attempt"]) == (1, 1)
    assert process.pid not in (result["pid"], result["worker"])
    assert (reload(first).progress_percent, reload(first).progress_note) == (50, "half")
    with connection.cursor() as cursor:
        cursor.execute("select level, message from job_logs where job_id = %s", [first.pk])
        assert cursor.fetchall() == [("warning", "payload 1")]
    assert (status_of(failing), error_of(failing)) == ("dead_letter", "ValueError: no such customer")
    # One child after the other was used again.
    second: Any = reload(again).result
    assert reload(asynchronous).result == second["pid"] == result["pid"]


def test_whoever_ruins_a_process_fails_alone(committed_queue: Queue) -> None:
    """A hundred others on the same worker run once each, and keep their leases all the while."""
    Queue.objects.update(visibility_timeout_secs=3)
    glutton = make_job(committed_queue, "isolated.glutton", max_attempts=1, timeout_s=30, priority=9)
    segfault = make_job(committed_queue, "isolated.segfault", max_attempts=1, priority=9)
    hog = make_job(committed_queue, "isolated.hog", max_attempts=1, timeout_s=4, priority=9)
    left = make_job(committed_queue, "isolated.exit", max_attempts=1, priority=9)
    killed = make_job(committed_queue, "isolated.killed", max_attempts=1, priority=9)
    others = make_jobs(committed_queue, 90, "effect", payload={"ms": 400}, max_attempts=1)
    long = make_jobs(committed_queue, 10, "effect", payload={"ms": 6_000}, max_attempts=1)

    oldest_s = 0.0
    with scheduler(), isolating("--concurrency", "16") as process:

        def all_ended() -> bool:
            nonlocal oldest_s
            with connection.cursor() as cursor:
                cursor.execute(
                    "select coalesce(max(extract(epoch from clock_timestamp() - lease_expires_at)), -1) from jobs"
                )
                oldest_s = max(oldest_s, float(cursor.fetchone()[0]))
            return not Job.objects.filter(completed_at=None).exists()

        wait_until(all_ended, timeout_s=60)
        assert process.popen.poll() is None
        assert not process.events("lease_lost")

    assert [status_of(job) for job in (glutton, segfault, hog, left, killed)] == ["dead_letter"] * 5
    assert error_of(glutton) == "OutOfMemory: the handler wanted more than its 256 MB"
    assert error_of(segfault) == "ProcessDied: the handler's process was killed by SIGSEGV"
    assert error_of(hog) == "timeout: the handler did not end within 4.0 s"
    assert error_of(left) == "ProcessDied: the handler's process ended with exit code 7 before the handler returned"
    assert "was killed by SIGKILL" in error_of(killed)
    unharmed = Job.objects.filter(pk__in=[job.id for job in (*others, *long)])
    assert set(unharmed.values_list("status", "attempt_count")) == {("completed", 1)}
    assert JobExecution.objects.filter(job__in=unharmed).count() == 100
    assert oldest_s <= 0


def test_a_timeout_throws_then_kills_with_all_that_was_started(committed_queue: Queue) -> None:
    blocked = make_job(committed_queue, "isolated.blocked", timeout_s=1, max_attempts=1)
    stubborn = make_job(committed_queue, "isolated.stubborn", timeout_s=1, max_attempts=1)
    with isolating("--concurrency", "1") as process:
        wait_until(lambda: status_of(blocked) == "dead_letter", timeout_s=8)
        wait_until(lambda: effects(stubborn, "start") == 1)
        began = time.monotonic()
        wait_until(lambda: status_of(stubborn) == "dead_letter", timeout_s=8)
        print(f"\nkilled {time.monotonic() - began:.1f} s after its start, 1 s allowed")
        assert [e["reason"] for e in process.events("handler_killed")] == ["timeout"]
        assert not process.events("handler_given_up")
        wait_until(lambda: not is_alive(int(reload(stubborn).progress_note or 0)))
    assert effects(blocked, "thrown") == 1
    assert error_of(blocked) == error_of(stubborn) == "timeout: the handler did not end within 1.0 s"


def test_a_cancel_that_is_not_obeyed_kills(committed_queue: Queue) -> None:
    job = make_job(committed_queue, "isolated.hog")
    with isolating(APP_WORKER_CANCEL_GRACE_SECS="1"):
        wait_until(lambda: effects(job, "start") == 1)
        cancel_job(job.pk, reason="no longer wanted")
        wait_until(lambda: status_of(job) == "cancelled", timeout_s=8)


def test_children_die_with_their_worker(committed_queue: Queue) -> None:
    make_job(committed_queue, "isolated.hog")
    make_job(committed_queue, "isolated.stubborn")
    with isolating("--concurrency", "2") as process:
        wait_until(lambda: Job.objects.filter(status="running").count() == 2)
        wait_until(lambda: Job.objects.filter(progress_note__isnull=False).exists())
        kin = psutil.Process(process.pid).children(recursive=True)
        assert len(kin) >= 5  # the pulse, the nursery, two children and a program of one of them
        process.kill()
        wait_until(lambda: not [p for p in kin if is_alive(p.pid)], timeout_s=10)


def test_a_shutdown_waits_for_the_grace_and_gives_back_what_is_left(committed_queue: Queue) -> None:
    short = make_job(committed_queue, "isolated", payload={"n": 1, "ms": 1_500})
    endless = make_job(committed_queue, "isolated.hog")
    with isolating("--concurrency", "2", APP_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS="3") as process:
        wait_until(lambda: effects(short, "start") == effects(endless, "start") == 1)
        kin = psutil.Process(process.pid).children(recursive=True)
        process.popen.terminate()
        assert process.wait(12) == 0
        assert status_of(short) == "completed"
        wait_until(lambda: not [p for p in kin if is_alive(p.pid)])
    assert (status_of(endless), reload(endless).attempt_count) == ("queued", 0)
    assert JobExecution.objects.get(job=endless).status == "interrupted"


def test_a_nursery_that_dies_is_replaced(committed_queue: Queue) -> None:
    """It takes the children along: their attempts fail, the worker goes on."""
    running = make_job(committed_queue, "isolated.hog", max_attempts=1)
    with isolating("--concurrency", "2") as process:
        wait_until(lambda: effects(running, "start") == 1)
        psutil.Process(process.events("nursery_ready")[0]["pid"]).kill()
        wait_until(lambda: status_of(running) == "dead_letter")
        assert error_of(running) == "ProcessDied: the handler's process ended, and nobody knows how"
        after = make_job(committed_queue, "isolated", payload={"n": 1})
        wait_until(lambda: status_of(after) == "completed", timeout_s=60)
        assert len(process.events("nursery_ready")) == 2


def test_what_an_isolated_job_costs(committed_queue: Queue) -> None:
    """Children are used again: 200 jobs on four seats need not many more than four."""
    make_jobs(committed_queue, 200, "isolated.async")
    with isolating("--concurrency", "4"):
        began = time.monotonic()
        wait_until(lambda: not Job.objects.filter(completed_at=None).exists(), timeout_s=60)
        took_s = time.monotonic() - began
    pids = {job.result for job in Job.objects.all()}
    print(f"\n200 isolated jobs on 4 seats: {took_s:.1f} s in {len(pids)} processes")
    assert len(pids) <= 12
