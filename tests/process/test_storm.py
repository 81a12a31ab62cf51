"""Many jobs, many processes, random SIGKILLs: all jobs end once, and the history tells the truth."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connection

from jobs.models import Job
from queues.models import Queue
from tests.factories import make_jobs
from tests.processes import Process, scheduler, worker
from tests.sizes import long, proved_by, size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

JOBS, LIMITED = size("STORM_JOBS", suite=3_000, full=5_000), size("LIMITED_JOBS", suite=700, full=1_500)
#: The scenario count-under-random-kills.
SHORT_JOBS = size("SHORT_JOBS", suite=150, full=1_000)
SHORT_WORKERS = size("SHORT_WORKERS", suite=3, full=8)


def count(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


class Storm(threading.Thread):
    """Kills one of several workers every ``every_s`` and starts another in its place.

    One that is still starting is spared: where a start takes longer than ``every_s``, nobody would ever work.
    """

    def __init__(self, start: Callable[[], Process], size: int, every_s: float) -> None:
        super().__init__(daemon=True)
        self._start, self._every_s = start, every_s
        self.processes = [start() for _ in range(size)]
        self.kills = 0
        self._over = threading.Event()
        self._rng = random.Random(11)

    def run(self) -> None:
        while not self._over.wait(self._every_s):
            index = self._rng.randrange(len(self.processes))
            if "worker_started" not in self.processes[index].output():
                continue
            self.processes[index].__exit__()
            self.processes[index] = self._start()
            self.kills += 1

    def calm(self) -> None:
        """No more kills."""
        self._over.set()
        self.join()


@contextlib.contextmanager
def storm(start: Callable[[], Process], size: int, every_s: float) -> Iterator[Storm]:
    found = Storm(start, size, every_s)
    found.start()
    try:
        yield found
    finally:
        found.calm()
        for process in found.processes:
            process.__exit__()


@proved_by("crash")
@pytest.mark.timeout(300)
def test_all_jobs_complete_once_while_workers_are_killed(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=3)
    Queue.objects.filter(pk=committed_queue.pk).update(max_concurrency=None)
    make_jobs(committed_queue, JOBS, "sleep_20", max_attempts=50)
    began = time.monotonic()

    with scheduler(), scheduler(), storm(worker, 3, 2.0) as weather:
        wait_until(lambda: count("select count(*) from jobs where status = 'completed'") == JOBS, timeout_s=240)

    lost = count("select count(*) from job_executions where status = 'lost'")
    print(f"\n{JOBS} jobs, {weather.kills} kills, {lost} attempts lost, {time.monotonic() - began:.1f} s")
    assert weather.kills >= 2
    assert count("select count(*) from job_executions where status = 'completed'") == JOBS
    assert count("select count(distinct job_id) from job_executions where status = 'completed'") == JOBS
    # The history tells the truth: attempts used up = rows written, numbered without gap.
    untrue = (
        "select count(*) from jobs j where attempt_count <>"
        " (select count(*) from job_executions e where e.job_id = j.id)"
    )
    assert count(untrue) == 0
    assert count("select count(*) from job_executions where attempt_number <> fencing_number") == 0
    assert count("select count(*) from job_executions where started_at < claimed_at or finished_at < started_at") == 0


@long
@pytest.mark.timeout(300)
def test_starts_equal_recorded_attempts_and_attempts_of_a_job_hardly_overlap(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=3)
    make_jobs(committed_queue, SHORT_JOBS, "effect", payload={"ms": 200}, max_attempts=50)

    with scheduler(), storm(lambda: worker("--concurrency", "4"), SHORT_WORKERS, 2.0) as weather:
        wait_until(lambda: count("select count(*) from jobs where status = 'completed'") == SHORT_JOBS, timeout_s=200)
        if SHORT_JOBS >= 1_000:
            wait_until(lambda: weather.kills >= 30, timeout_s=120)  # the scenario's whole minute

    starts = count("select count(*) from test_effects where kind = 'start'")
    attempts = count("select count(*) from job_executions")
    print(f"\n{weather.kills} kills, {starts} starts, {attempts} recorded attempts")
    # An attempt is written down with its claim; a kill in the moment before the handler's first statement, or while
    # prefetched, leaves an attempt without a trace of ours, never the other way round.
    unrecorded = count(
        "select count(*) from test_effects s where kind = 'start' and not exists"
        " (select 1 from job_executions e where e.job_id = s.job_id and e.fencing_number = s.fencing_number)"
    )
    assert unrecorded == 0
    assert starts <= attempts <= starts + weather.kills * 4
    overlaps = count(
        "select count(*) from test_effects a join test_effects b"
        " on a.job_id = b.job_id and a.kind = 'end' and b.kind = 'start'"
        " and a.fencing_number < b.fencing_number and a.at > b.at + interval '3 seconds'"
    )
    assert overlaps == 0


@long
@pytest.mark.timeout(300)
def test_limit_of_seven_is_never_exceeded_while_workers_are_killed(committed_queue: Queue) -> None:
    Queue.objects.filter(pk=committed_queue.pk).update(max_concurrency=7, visibility_timeout_secs=3)
    make_jobs(committed_queue, LIMITED, "sleep_20", max_attempts=50)
    most = 0
    samples = 0

    with scheduler(), storm(lambda: worker("--concurrency", "8"), 3, 2.0) as weather:

        def is_done() -> bool:
            nonlocal most, samples
            most = max(most, count("select count(*) from jobs where status in ('claimed', 'running')"))
            samples += 1
            return count("select count(*) from jobs where status <> 'completed'") == 0

        wait_until(is_done, timeout_s=200, every_s=0.005)

    print(f"\nmost in flight {most} of 7 in {samples} samples, {weather.kills} kills")
    assert most == 7
    assert Job.objects.filter(status="completed").count() == LIMITED
