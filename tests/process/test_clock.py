"""Processes whose clock is wrong: the database's decides what is due, leased and expired."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from jobs.models import Job, JobExecution, LeaderTerm, ScheduledJob, ScheduleFire
from jobs.services.schedules import create_schedule
from queues.models import Queue
from scheduler_project.lib.sql import database_now
from tests.factories import make_job
from tests.processes import Process
from tests.sizes import long
from tests.waiting import wait_until

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)

pytestmark = [
    pytest.mark.process,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(LIBRARY is None, reason="needs libfaketime to shift a process's clock (Debian: faketime)"),
]


def shifted(command: str, shift: str) -> Process:
    # Wall clocks only: an interval is an interval on a machine with a wrong clock too.
    env = {"LD_PRELOAD": str(LIBRARY), "FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return Process(command, env=env)


def is_queued(job: Job) -> bool:
    return Job.objects.filter(pk=job.pk, status="queued").exists()


def has_fired(times: int) -> bool:
    return ScheduleFire.objects.count() == times


def test_each_due_time_fires_once_while_the_schedulers_clock_jumps(committed_queue: Queue) -> None:
    schedule = create_schedule(committed_queue, name="tens", cron_expression="*/10 * * * *", job_type="noop")
    assert schedule.next_run_at
    future = schedule.next_run_at + timedelta(days=1)  # it does not come while the test runs
    expected = []
    for n, shift in enumerate(["+0h", "-1h", "+2h", "+0h"], start=1):
        due = database_now().replace(second=0, microsecond=0) - timedelta(days=10 - n)
        expected.append(due)
        ScheduledJob.objects.update(next_run_at=due, misfire_grace_secs=10**9, ends_at=due)
        terms = LeaderTerm.objects.count()
        with shifted("runscheduler", shift):
            wait_until(partial(has_fired, n), timeout_s=15)
            # What is due in the future stays there, whatever this process thinks the time is.
            ScheduledJob.objects.update(next_run_at=future, ends_at=None, is_active=True)
            wait_until(partial(is_queued, make_job(committed_queue, delay_s=0.5)), timeout_s=15)
            assert LeaderTerm.objects.count() == terms + 1

    assert list(ScheduleFire.objects.order_by("due_at").values_list("due_at", flat=True)) == expected
    assert ScheduledJob.objects.get().next_run_at == future


@pytest.mark.parametrize("shift", [pytest.param("-1h", marks=long), "+2h"])
def test_worker_with_a_wrong_clock_keeps_its_leases_and_writes_right_times(committed_queue: Queue, shift: str) -> None:
    Queue.objects.update(visibility_timeout_secs=3)
    job = make_job(committed_queue, "sleep_5000")
    began = database_now()
    with shifted("runworker", shift), Process("runscheduler"):
        wait_until(lambda: Job.objects.filter(pk=job.pk, status="completed").exists(), timeout_s=20)

    execution = JobExecution.objects.get()
    assert execution.status == "completed"
    assert execution.started_at is not None
    assert began <= execution.claimed_at <= execution.started_at <= execution.finished_at <= database_now()
