"""Hundreds of transactional jobs while workers are frozen and killed: each has its effect once."""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
from functools import partial

import pytest
from django.db import connection

from jobs.models import Job
from queues.models import Queue
from tests.factories import make_job, make_jobs, reload, status_of
from tests.processes import ROOT, Process, scheduler, worker
from tests.sizes import long, proved_by, size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]
LEASE_S = 2
CREW = 3
JOBS, LOOSE = size("ONCE_JOBS", suite=150, full=500), size("LOOSE_JOBS", suite=200, full=200)


def effects_of(job_type: str) -> list[int]:
    """How often each job of the type has had its effect."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(effect.job_id) from jobs left join test_effects as effect on effect.job_id = jobs.id"
            " where jobs.job_type = %s group by jobs.id",
            [job_type],
        )
        return [row[0] for row in cursor.fetchall()]


def is_over() -> bool:
    return not Job.objects.filter(completed_at=None).exists()


def has_begun(process: Process) -> bool:
    return is_over() or bool(process.events("worker_started"))


def freeze(process: Process) -> None:
    """For longer than its leases last and are reaped."""
    process.send(signal.SIGSTOP)
    until = time.monotonic() + LEASE_S + 2
    wait_until(lambda: is_over() or time.monotonic() > until, timeout_s=10)
    process.send(signal.SIGCONT)


def torment(count: int) -> tuple[int, int]:
    """Workers that are frozen beyond their leases, and killed, in turns until all jobs have ended."""
    frozen = killed = 0
    with contextlib.ExitStack() as stack:
        crew: list[Process] = [stack.enter_context(worker("--concurrency", "4")) for _ in range(count)]
        wait_until(lambda: Job.objects.exclude(attempt_count=0).exists(), timeout_s=60)
        for turn in itertools.count():
            if is_over():
                break
            index = turn % count
            wait_until(partial(has_begun, crew[index]), timeout_s=60)
            if turn % 2:
                crew[index].kill()
                killed += 1
                crew[index] = stack.enter_context(worker("--concurrency", "4"))
            else:
                freeze(crew[index])
                frozen += 1
        for one in crew:  # what a ghost does after its waking is done before anything is counted
            one.popen.terminate()
        for one in crew:
            one.wait(60)
    return frozen, killed


@proved_by("exactly-once")
def test_each_job_has_its_effect_once(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=LEASE_S)
    make_jobs(committed_queue, JOBS, "booking", payload={"ms": 200}, max_attempts=50)

    with scheduler():
        frozen, killed = torment(CREW)

    again = Job.objects.filter(attempt_count__gt=1).count()
    print(f"\n{frozen} freezes, {killed} kills, {again} jobs had more than one attempt")
    assert set(Job.objects.values_list("status", flat=True)) == {"completed"}
    assert again > 0, "nothing was lost: the test proves nothing"
    assert effects_of("booking") == [1] * JOBS


@long
def test_the_example_of_the_documentation_does_what_it_says(committed_queue: Queue) -> None:
    with Process(program=(str(ROOT / "docs" / "examples" / "exactly_once.py"),)) as example:
        assert example.wait(180) == 0, example.output()
        assert "0 duplicates" in example.output()
        assert "killed a worker" in example.output()


def test_a_ghost_that_asks_for_its_lease_does_not_commit(committed_queue: Queue) -> None:
    """A handler with a transaction of its own, frozen in the middle of it while another attempt has its effect."""
    Queue.objects.update(visibility_timeout_secs=LEASE_S)
    job = make_job(committed_queue, "booking.own", payload={"ms": 1_500}, max_attempts=5)

    with scheduler(), worker() as frozen:
        wait_until(lambda: status_of(job) == "running")
        frozen.send(signal.SIGSTOP)
        with worker():
            wait_until(lambda: status_of(job) == "completed", timeout_s=30)
            assert effects_of("booking.own") == [1]
            frozen.send(signal.SIGCONT)
            wait_until(lambda: frozen.events("late_result_refused"))

    assert effects_of("booking.own") == [1]
    assert reload(job).attempt_count == 2


def test_without_the_fence_some_have_it_twice(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=LEASE_S)
    make_jobs(committed_queue, LOOSE, "booking.loose", payload={"ms": 200}, max_attempts=50)

    with scheduler():
        torment(CREW)

    found = effects_of("booking.loose")
    print(f"\nwithout the fence: {sum(n > 1 for n in found)} of {len(found)} jobs have had their effect more than once")
    assert max(found) > 1
