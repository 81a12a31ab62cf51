"""runworker --processes: several workers as one."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from django.db import connection

from jobs.models import Job, Worker
from queues.models import Queue
from tests.factories import make_job, make_jobs
from tests.processes import Process, is_alive, worker
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


def workers(process: Process) -> list[int]:
    """The pids of the workers under it."""
    return [child.pid for child in psutil.Process(process.pid).children() if is_alive(child.pid)]


def pids_of_effects() -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute("select distinct pid from test_effects")
        return {row[0] for row in cursor.fetchall()}


def is_all_done() -> bool:
    return not Job.objects.exclude(status="completed").exists()


def test_they_share_the_work_and_one_that_dies_comes_back(committed_queue: Queue) -> None:
    with worker("--processes", "2", "--concurrency", "2") as process:
        wait_until(lambda: Worker.objects.filter(status="active").count() == 2, 30, what="both workers")
        make_jobs(committed_queue, 40, "effect", payload={"ms": 50})
        wait_until(is_all_done, 30)
        first = set(workers(process))
        assert pids_of_effects() == first
        assert len(process.events("worker_started")) == 2  # their lines are passed on as they are

        os.kill(min(first), signal.SIGKILL)
        wait_until(lambda: len(workers(process)) == 2 and set(workers(process)) != first, 30, what="another one")
        wait_until(lambda: len(process.events("worker_started")) == 3, 30)

        process.send(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_first_stop_waits_for_running_jobs_and_a_second_gives_them_back(committed_queue: Queue) -> None:
    make_jobs(committed_queue, 2, "effect.polite", payload={"ms": 60_000})
    with worker("--processes", "2", "--concurrency", "1", env={"APP_WORKER_CANCEL_GRACE_SECS": "60"}) as process:
        wait_until(lambda: Job.objects.filter(status="running").count() == 2, 30, what="both jobs")

        process.send(signal.SIGTERM)
        wait_until(lambda: len(process.events("worker_draining")) == 2, 10)
        assert Job.objects.filter(status="running").count() == 2
        process.send(signal.SIGTERM)

        assert process.wait(15) == 0
    assert list(Job.objects.values_list("status", "attempt_count")) == [("queued", 0)] * 2


@pytest.mark.parametrize("arguments", [("0",), ("65",), ("2", "--drain")])
def test_what_makes_no_sense_is_refused(committed_queue: Queue, arguments: tuple[str, ...]) -> None:
    make_job(committed_queue)
    with worker("--processes", *arguments) as process:
        assert process.wait(20) == 1
        assert "--processes" in process.output() or "one process" in process.output()
