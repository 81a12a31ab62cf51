"""Schedulers: one leads, and when it goes the other takes over soon."""

from __future__ import annotations

import signal
import statistics
import time
from functools import partial

import pytest
from django.db import connection

from jobs.models import Job, LeaderTerm
from queues.models import Queue
from tests.factories import make_job
from tests.processes import Process, scheduler
from tests.sizes import proved_by, size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

ROUNDS, CUTS = size("LEADER_ROUNDS", suite=8, full=30), 3


def leader_pid() -> int | None:
    """The pid of the process whose session holds the lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select term.pid from leader_terms term join pg_locks held on held.pid = term.backend_pid"
            " where held.locktype = 'advisory' and held.objid = 42 and held.granted"
            " and held.database = (select oid from pg_database where datname = current_database())"
            " order by term.id desc limit 1"
        )
        row = cursor.fetchone()
        return row[0] if row else None


def another_leads(pid: int | None) -> bool:
    return leader_pid() not in (None, pid)


def promoted(job: Job) -> bool:
    return Job.objects.filter(pk=job.pk, status="queued").exists()


@proved_by("failover")
@pytest.mark.timeout(300)
def test_standby_acts_within_a_second_of_the_leaders_death(committed_queue: Queue) -> None:
    gaps: list[float] = []
    running: list[Process] = [scheduler(), scheduler()]
    try:
        wait_until(leader_pid)
        for _ in range(ROUNDS):
            wait_until(lambda: len([p for p in running if p.events("scheduler_started")]) == 2)
            pid = wait_until(leader_pid)
            leader = next(p for p in running if p.pid == pid)
            job = make_job(committed_queue, delay_s=0.0)
            Job.objects.filter(pk=job.pk).update(status="scheduled")
            began = time.monotonic()

            leader.kill()

            wait_until(partial(another_leads, pid), timeout_s=5, every_s=0.005)
            wait_until(partial(promoted, job), timeout_s=5, every_s=0.005)
            gaps.append(time.monotonic() - began)
            leader.__exit__()
            running.remove(leader)
            running.append(scheduler())
    finally:
        for process in running:
            process.__exit__()

    worst = statistics.quantiles(gaps, n=20, method="inclusive")[-1]
    print(f"\nfail-over over {ROUNDS} kills: median {statistics.median(gaps):.3f} s, 95th percentile {worst:.3f} s")
    assert worst < 1.0


def test_leader_that_loses_its_session_stands_back(committed_queue: Queue) -> None:
    with scheduler() as first, scheduler() as second:
        for _ in range(CUTS):
            pid = wait_until(leader_pid)
            term = LeaderTerm.objects.latest("id")
            with connection.cursor() as cursor:
                cursor.execute("select pg_terminate_backend(%s)", [term.backend_pid])
            wait_until(LeaderTerm.objects.filter(pk__gt=term.pk).exists, timeout_s=5)
            loser = first if first.pid == pid else second
            wait_until(partial(loser.events, "leadership_lost"))

        job = make_job(committed_queue, delay_s=0.3)
        wait_until(lambda: promoted(job), timeout_s=5)
        assert first.popen.poll() is None
        assert second.popen.poll() is None


def test_frozen_leader_is_deposed_and_can_do_nothing_afterwards(committed_queue: Queue) -> None:
    with scheduler() as first, scheduler() as second:
        pid = wait_until(leader_pid)
        frozen, standby = (first, second) if first.pid == pid else (second, first)
        frozen.send(signal.SIGSTOP)

        wait_until(lambda: leader_pid() == standby.pid, timeout_s=15)
        job = make_job(committed_queue, delay_s=0.2)
        wait_until(lambda: promoted(job), timeout_s=5)

        frozen.send(signal.SIGCONT)
        wait_until(lambda: frozen.events("leadership_lost"), timeout_s=10)
        assert leader_pid() == standby.pid


def test_due_job_is_queued_in_time_and_not_at_the_next_poll(committed_queue: Queue) -> None:
    with scheduler(env={"APP_SCHEDULER_POLL_INTERVAL_MS": "60000"}):
        wait_until(leader_pid)
        job = make_job(committed_queue, delay_s=1.0)
        wait_until(lambda: promoted(job), timeout_s=5)
    late = Job.objects.values_list("updated_at", "run_at").get(pk=job.pk)
    assert 0 <= (late[0] - late[1]).total_seconds() < 1.0
