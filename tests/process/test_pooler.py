"""Behind PgBouncer in transaction mode: work goes through it, LISTEN, leadership, pulse and migrations past it.

More of the suite's processes run behind one by `make test-pooler`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from jobs.doctor.checks import listen
from jobs.models import Job, JobExecution, LeaderTerm
from queues.models import Queue
from scheduler_project.lib.pg import settings_from_url
from tests.factories import make_job, make_jobs
from tests.pooler import MISSING, PROGRAM, Pooler, running_pooler
from tests.processes import Process, database_url, scheduler, worker
from tests.servers import web_server
from tests.sizes import long
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.process,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]
#: A poll so rare that what is seen soon was not found by it.
NO_POLL = {"APP_WORKER_POLL_INTERVAL_MS": "600000"}


@pytest.fixture(scope="module")
def pooler(django_db_setup: None, django_db_blocker: Any) -> Iterator[Pooler]:
    """A pooler before the test database."""
    with django_db_blocker.unblock(), running_pooler() as running:
        yield running


def addresses(pooler: Pooler, **more: str) -> dict[str, str]:
    return {"APP_DATABASE_URL": pooler.url(), "APP_DATABASE_DIRECT_URL": database_url(), **more}


def count(status: str) -> int:
    return Job.objects.filter(status=status).count()


def sessions(condition: str) -> list[tuple[int, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "select pid, application_name from pg_stat_activity"
            f" where datname = current_database() and application_name <> '' and {condition} order by 2"
        )
        found: list[tuple[int, str]] = cursor.fetchall()
        return found


def direct_ones() -> list[str]:
    return sorted(name.split()[1] for _, name in sessions("true"))


def test_the_pooler_is_real_and_shares_sessions(pooler: Pooler) -> None:
    with pooler.connect() as one, pooler.connect() as two:
        two.execute("begin")  # keeps one session busy, so that there are two
        pids = {row[0] for _ in range(12) for row in one.execute("select pg_backend_pid()").fetchall()}
        two.execute("rollback")
        pids |= {row[0] for _ in range(12) for row in two.execute("select pg_backend_pid()").fetchall()}
        one.execute("listen punctual")
        with psycopg.connect(database_url(), autocommit=True) as direct:
            direct.execute("notify punctual, 'work x'")
        heard = list(one.notifies(timeout=0.5))

    assert len(pids) > 1
    assert heard == []


def test_worker_scheduler_and_web_work_through_it_and_fail_over_behind_it(
    pooler: Pooler, committed_queue: Queue, unused_port: int
) -> None:
    env = addresses(pooler)
    Queue.objects.filter(pk=committed_queue.pk).update(max_concurrency=4)
    make_jobs(committed_queue, 200, "effect")
    later = make_job(committed_queue, "effect", delay_s=0.5)
    booked = make_job(committed_queue, "booking", payload={"ms": 10})
    isolated = make_job(committed_queue, "isolated", payload={"n": 1})
    walked = make_job(committed_queue, "walk")
    handlers = {"APP_HANDLER_MODULES": "tests.work,tests.isolated_work"}
    with (
        worker(env=env | handlers) as process,
        scheduler(env=env) as first,
        scheduler(env=env) as second,
        web_server(unused_port, **env) as _,
    ):
        wait_until(lambda: count("completed") == 204, 60, what="the jobs")
        for job in (later, booked, isolated, walked):
            assert JobExecution.objects.filter(job_id=job.pk).count() == 1

        term = LeaderTerm.objects.latest("id")
        leader = first if first.pid == term.pid else second
        leader.kill()
        wait_until(LeaderTerm.objects.filter(pk__gt=term.pk).exists, 10, what="another leader")
        again = make_job(committed_queue, "effect", delay_s=0.2)
        wait_until(Job.objects.filter(pk=again.pk, status="completed").exists, what="a job of the new term")

        direct = [name for _, name in sessions("true")]
        assert [name for name in direct if name.startswith("punctual pulse")]
        assert "punctual scheduler" in direct
        assert "punctual scheduler listener" in direct
        # What works through the pooler bears no name of ours; it has carried all of the work.
        database = connection.settings_dict["NAME"]
        [through] = [row for row in pooler.show("stats_totals") if row["database"] == database]
        assert through["xact_count"] > 20

        process.send(signal.SIGTERM)
        assert process.wait(20) == 0
    assert count("running") + count("claimed") == 0


@long
def test_a_killed_workers_jobs_are_run_by_another_once_their_leases_are_over(
    pooler: Pooler, committed_queue: Queue
) -> None:
    Queue.objects.filter(pk=committed_queue.pk).update(visibility_timeout_secs=3)
    job = make_job(committed_queue, "effect", payload={"ms": 1_500}, max_attempts=5)
    env = addresses(pooler)
    with worker(env=env) as dies, scheduler(env=env):
        wait_until(lambda: count("running") == 1)
        dies.kill()
        with worker(env=env):
            wait_until(Job.objects.filter(pk=job.pk, status="completed").exists, 30, what="the rescue")
    assert sorted(JobExecution.objects.values_list("status", flat=True)) == ["completed", "lost"]


def test_hints_arrive_past_it(pooler: Pooler, committed_queue: Queue) -> None:
    with worker(env=addresses(pooler) | NO_POLL) as process:
        wait_until(lambda: process.events("worker_started"))
        wait_until(lambda: direct_ones() == ["listener", "pulse"], what="its two direct sessions")
        job = make_job(committed_queue, "effect")

        wait_until(Job.objects.filter(pk=job.pk, status="completed").exists, 10, what="a job that was hinted at")


@long
def test_without_a_direct_address_a_worker_polls(pooler: Pooler, committed_queue: Queue) -> None:
    """LISTEN is off, and the pulse goes through the pooler too."""
    Queue.objects.filter(pk=committed_queue.pk).update(visibility_timeout_secs=3)
    job = make_job(committed_queue, "effect", payload={"ms": 4_000})
    with worker(env={"APP_DATABASE_URL": pooler.url(), "APP_LISTEN": "false"}) as process:
        wait_until(Job.objects.filter(pk=job.pk, status="completed").exists, what="the job")
        assert process.events("heartbeat_failed") == []
    assert JobExecution.objects.get().status == "completed"


def test_a_scheduler_that_is_sent_through_it_is_refused_and_says_so(pooler: Pooler, committed_queue: Queue) -> None:
    with scheduler(url=pooler.url()) as misled:
        [first, *_] = wait_until(lambda: misled.events("database_away"))
        assert "startup parameter" in first["error"]
    assert not LeaderTerm.objects.exists()


def test_migrations_go_past_it(pooler: Pooler) -> None:
    """The pooled address leads nowhere: only what goes past it can work."""
    nowhere = f"postgresql://punctual@/nowhere?host={pooler.folder / 'nothing'}"
    env = {"APP_DATABASE_URL": nowhere, "APP_DATABASE_DIRECT_URL": database_url()}
    with Process("migrate", "--verbosity", "0", env=env) as migrate:
        assert migrate.wait(60) == 0, migrate.output()


def test_doctor_names_a_direct_address_that_leads_to_the_pooler(
    pooler: Pooler, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(listen.look()) == []

    monkeypatch.setattr(settings, "DATABASE_DIRECT", settings_from_url(pooler.url()))
    monkeypatch.setattr(listen, "WAIT_S", 0.3)
    with pooler.connect() as other:
        other.execute("begin")
        texts = [finding.text for finding in listen.look()]

    assert any("a hint did not arrive" in text for text in texts), texts
