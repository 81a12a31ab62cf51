"""A worker dies, freezes or computes without pause: what happens to its jobs."""

from __future__ import annotations

import signal

import pytest
from django.db import connection

from jobs.models import Job, JobExecution
from queues.models import Queue
from tests.factories import make_job
from tests.processes import Process, scheduler, worker
from tests.sizes import long
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


def effects(job: Job, kind: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from test_effects where job_id = %s and kind = %s", [job.pk, kind])
        return int(cursor.fetchone()[0])


#: What kills its worker is tried again in the worker itself.
IN_THREAD = {"APP_WORKER_ISOLATE_LOST": "false"}


POISON = {"APP_POISON_AFTER": "3"}


def status_of(job: Job) -> str:
    return Job.objects.values_list("status", flat=True).get(pk=job.pk)


def test_job_of_a_killed_worker_runs_again_within_lease_plus_sweep(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=3)
    job = make_job(committed_queue, "effect.polite", payload={"ms": 60_000})

    with scheduler(), worker() as first:
        wait_until(lambda: effects(job, "start") == 1)
        first.kill()
        Job.objects.filter(pk=job.pk).update(payload={"ms": 0})
        with worker():
            wait_until(lambda: status_of(job) == "completed", timeout_s=12)

    attempts = list(
        JobExecution.objects.filter(job=job).order_by("fencing_number").values_list("status", "attempt_number")
    )
    assert attempts == [("lost", 1), ("completed", 2)]


def test_late_result_of_a_frozen_worker_changes_nothing_and_is_counted(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=3)
    job = make_job(committed_queue, "effect", payload={"ms": 1_500})

    with scheduler(), worker() as frozen:
        wait_until(lambda: effects(job, "start") == 1)
        frozen.send(signal.SIGSTOP)
        with worker(env=IN_THREAD) as healthy:
            wait_until(lambda: status_of(job) == "completed", timeout_s=15)
            settled = Job.objects.get(pk=job.pk)
            frozen.send(signal.SIGCONT)
            wait_until(lambda: effects(job, "end") == 2, what="the ghost goes on")
            wait_until(lambda: frozen.events("late_result_refused"), what="the ghost's result is refused")

    after = Job.objects.get(pk=job.pk)
    assert after.result == settled.result == {"pid": healthy.pid}
    assert (after.updated_at, after.attempt_count) == (settled.updated_at, 2)
    assert JobExecution.objects.filter(job=job).count() == 2


def test_job_that_kills_its_worker_is_buried_after_its_attempts(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=2)
    poison = make_job(committed_queue, "poison", max_attempts=2)

    with scheduler():
        for _ in range(2):
            with worker(env=IN_THREAD) as victim:
                assert victim.wait(60) == -signal.SIGKILL
        wait_until(lambda: status_of(poison) == "dead_letter", timeout_s=10)

    assert effects(poison, "start") == 2
    letter = poison.dead_letters.get()
    assert letter.failure_reason == "worker lost"


@long
def test_job_that_holds_the_interpreter_keeps_its_lease(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=3)
    # Each step doubles the time; 28 is about six seconds on a slow machine, twice the lease.
    hog = make_job(committed_queue, "hog", payload={"size": 28}, max_attempts=1)
    busy = make_job(committed_queue, "busy", payload={"ms": 6_000}, max_attempts=1)

    with scheduler(), worker():
        wait_until(lambda: status_of(hog) == "completed" and status_of(busy) == "completed", timeout_s=60)

    assert [effects(hog, "start"), effects(busy, "start")] == [1, 1]


@pytest.mark.parametrize("max_attempts", [3, pytest.param(10, marks=long)])
def test_poison_is_quarantined_after_three_starts_and_takes_nobody_along(
    committed_queue: Queue, max_attempts: int
) -> None:
    """Its first start ends a worker and what runs beside it; from the second on it has a process of its own."""
    Queue.objects.update(visibility_timeout_secs=3)
    poison = make_job(committed_queue, "poison", max_attempts=max_attempts)
    harmless = [make_job(committed_queue, "effect", payload={"ms": 100}, max_attempts=10) for _ in range(50)]
    crew = Crew(4)

    with scheduler(env=POISON), crew:
        wait_until(lambda: crew.restart_dead() and not Job.objects.filter(completed_at=None).exists(), timeout_s=90)

    assert effects(poison, "start") == 3
    assert poison.dead_letters.get().failure_reason == "worker lost"
    attempts = dict(Job.objects.filter(pk__in=[job.pk for job in harmless]).values_list("pk", "attempt_count"))
    assert not Job.objects.filter(pk__in=attempts).exclude(status="completed").exists()
    assert max(attempts.values()) <= 2
    assert crew.deaths == 1
    errors = JobExecution.objects.filter(job=poison).order_by("fencing_number").values_list("status", "error_message")
    assert [status for status, _ in errors] == ["lost", "failed", "failed"]
    assert "killed by SIGKILL" in str(errors[2][1])


class Crew:
    """Workers, each started anew when it died."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[Process] = []
        self.deaths = 0

    def __enter__(self) -> None:
        self._workers = [worker(env=POISON) for _ in range(self._count)]

    def restart_dead(self) -> bool:
        """Start anew who died; always True."""
        for index, one in enumerate(self._workers):
            if one.popen.poll() is not None:
                one.log.close()
                self._workers[index] = worker(env=POISON)
                self.deaths += 1
        return True

    def __exit__(self, *_: object) -> None:
        for one in self._workers:
            one.__exit__()
