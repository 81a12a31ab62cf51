"""The database restarts, a connection is killed, a transaction is watched: everybody recovers by himself."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from jobs.lifecycle.submit import NewJob, submit_jobs
from jobs.models import Job, JobExecution
from queues.models import Queue
from scheduler_project.lib.embedded_pg import DURABLE, EmbeddedPostgres
from tests.factories import make_job, make_jobs
from tests.processes import Process, scheduler, worker
from tests.sizes import long, proved_by
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

needs_own_cluster = pytest.mark.skipif(
    settings.EMBEDDED is None, reason="restarts PostgreSQL, so it needs the embedded one: unset APP_DATABASE_URL"
)


@pytest.fixture
def cluster() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL of its own, durable, with the product's tables."""
    # Several of pytest's workers may be here at once, each in its own.
    name = f"restarted-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    own = EmbeddedPostgres(settings.BASE_DIR, name, DURABLE).ensure()
    with psycopg.connect(own.url("postgres"), autocommit=True) as admin:
        admin.execute("drop database if exists punctual with (force)")
    own.create_database("punctual")
    with Process("migrate", url=own.url("punctual")) as migrate:
        assert migrate.wait(60) == 0, migrate.output()
    try:
        yield own
    finally:
        own.stop("immediate")


SETUP = """
insert into organizations (id, name, slug) values (gen_random_uuid(), 'o', 'o');
insert into projects (id, organization_id, name, slug, updated_at)
  select gen_random_uuid(), id, 'p', 'p', now() from organizations;
insert into queues (id, project_id, name, priority, is_paused, paused_reason, visibility_timeout_secs, updated_at)
  select gen_random_uuid(), id, 'q', 0, false, '', 10, now() from projects;
"""
SUBMIT = """
insert into jobs (id, project_id, queue_id, job_type, payload, status)
select gen_random_uuid(), project_id, id, 'sleep_20', '{}', 'queued' from queues returning id
"""


END_SESSIONS = """
select pg_terminate_backend(pid) from pg_stat_activity where datname = 'punctual' and pid <> pg_backend_pid()
"""


class Producer(threading.Thread):
    """Inserts jobs at a steady pace, whatever the database does; remembers what was acknowledged."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.acknowledged, self.stopped = url, 0, threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            with contextlib.suppress(psycopg.Error), psycopg.connect(self.url, autocommit=True) as session:
                while not self.stopped.wait(0.02):
                    session.execute(SUBMIT)
                    self.acknowledged += 1


def ask(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as session:
        row = session.execute(statement).fetchone()
        return row[0] if row else None


@proved_by("database")
@needs_own_cluster
@pytest.mark.timeout(240)
def test_restarts_under_load_lose_nothing_and_need_no_restart_of_ours(cluster: EmbeddedPostgres) -> None:
    url = cluster.url("punctual")
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(SETUP)
    producer = Producer(url)
    with worker(url=url) as a, worker(url=url) as b, scheduler(url=url) as c, scheduler(url=url) as d:
        producer.start()
        wait_until(lambda: ask(url, "select count(*) from jobs where status = 'completed'") > 50)

        cluster.restart("fast")
        grown = ask(url, "select count(*) from jobs where status = 'completed'") + 50
        wait_until(lambda: ask(url, "select count(*) from jobs where status = 'completed'") > grown, timeout_s=30)
        cluster.stop("immediate")
        time.sleep(3)  # the outage itself
        cluster.ensure()
        grown = ask(url, "select count(*) from jobs where status = 'completed'") + 50
        wait_until(lambda: ask(url, "select count(*) from jobs where status = 'completed'") > grown, timeout_s=30)

        producer.stopped.set()
        producer.join(10)
        wait_until(lambda: ask(url, "select count(*) from jobs where status <> 'completed'") == 0, timeout_s=40)
        assert [p.popen.poll() for p in (a, b, c, d)] == [None] * 4, b.output()[-3000:]
        # Attempts that were cut off may have run twice; none was settled twice, none was lost.
        total = ask(url, "select count(*) from jobs")
        assert total >= producer.acknowledged
        assert ask(url, "select count(*) from job_executions where status = 'completed'") == total
        noise = [len(p.events("database_away")) for p in (a, b, c, d)]
        print(f"\n{total} jobs over two restarts, {producer.acknowledged} acknowledged, outage lines {noise}")
        assert max(noise) < 40


def test_killed_listener_costs_no_job_and_listens_again(committed_queue: Queue) -> None:
    with worker(env={"APP_WORKER_POLL_INTERVAL_MS": "1000"}) as process:
        listening = "select count(*) from pg_stat_activity where application_name like 'punctual listener%'"
        with connection.cursor() as cursor:

            def listeners() -> int:
                cursor.execute(listening)
                return int(cursor.fetchone()[0])

            wait_until(listeners)
            cursor.execute(listening.replace("count(*)", "pg_terminate_backend(pid)"))
            job = make_job(committed_queue)

            wait_until(lambda: Job.objects.filter(pk=job.pk, status="completed").exists(), timeout_s=3)
            wait_until(listeners, timeout_s=10)
        assert process.popen.poll() is None


def test_poll_only_mode_runs_jobs_without_listening(committed_queue: Queue) -> None:
    with worker(env={"APP_LISTEN": "false"}):
        job = make_job(committed_queue)
        wait_until(lambda: Job.objects.filter(pk=job.pk, status="completed").exists(), timeout_s=10)
        with connection.cursor() as cursor:
            cursor.execute(
                "select count(*) from pg_stat_activity where application_name like 'punctual listener%'"
                " and datname = current_database()"  # other tests run beside this one
            )
            assert cursor.fetchone()[0] == 0


def test_large_payloads_bulks_and_errors_pass_and_hints_carry_ids_only(committed_queue: Queue) -> None:
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as ear, worker():
        ear.execute("listen punctual")
        large = make_job(committed_queue, "test.echo", payload={"x": "a" * 20_000})
        bulk = make_jobs(committed_queue, 1_000)
        loud = make_job(committed_queue, "failing", payload={"message": "e" * 100_000}, max_attempts=1)

        wait_until(lambda: Job.objects.filter(status__in=["completed", "dead_letter"]).count() == len(bulk) + 2)
        notes = [note.payload for note in ear.notifies(timeout=0.5)]

    assert Job.objects.get(pk=large.pk).result == {"x": "a" * 20_000}
    assert len(Job.objects.get(pk=loud.pk).error_message or "") <= 10_000
    assert 1 <= len(notes) < 20
    assert all(len(note) < 60 for note in notes)


def test_no_transaction_stays_open_while_handlers_run(committed_queue: Queue) -> None:
    make_jobs(committed_queue, 10, "sleep_3000")
    with worker(), scheduler():
        wait_until(lambda: Job.objects.filter(status="running").count() == 10)
        seen = 0
        while Job.objects.filter(status="running").exists():
            with connection.cursor() as cursor:
                cursor.execute(
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and state like 'idle in transaction%%' and state_change < clock_timestamp() - interval '1 second'"
                )
                seen += cursor.fetchone()[0]
            time.sleep(0.2)  # the sampling interval
    assert seen == 0


@pytest.mark.skipif(
    os.environ.get("APP_TEST_POOLER") == "1",
    reason="ends an idle session of the server, which is the pooler's: the worker keeps its own and notices nothing",
)
def test_claim_whose_answer_is_lost_is_given_back_without_an_attempt(committed_queue: Queue) -> None:
    """The backend dies right after a commit: the worker asks what it holds and returns what it never heard of."""
    with worker() as process:
        wait_until(lambda: process.events("worker_started"))
        worker_id = process.events("worker_started")[0]["worker_id"]
        submit_jobs(committed_queue, [NewJob(job_type="from.elsewhere")])
        Job.objects.update(
            status="running", locked_by=worker_id, locked_at="2026-01-01T00:00:00Z", fencing_number=1,
            lease_token="00000000-0000-7000-8000-000000000001", lease_expires_at="2099-01-01T00:00:00Z",
        )  # fmt: skip

        with connection.cursor() as cursor:
            cursor.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
                " and pid <> pg_backend_pid() and application_name = ''"
            )

        wait_until(lambda: Job.objects.filter(status="queued", attempt_count=0).exists(), timeout_s=10)
    assert JobExecution.objects.count() == 0


def test_web_answers_503_during_an_outage_and_recovers(cluster: EmbeddedPostgres, unused_port: int) -> None:
    env = {"APP_API_PORT": str(unused_port), "APP_API_HOST": "127.0.0.1"}
    ready = f"http://127.0.0.1:{unused_port}/readyz"

    def answer() -> int:
        try:
            with urllib.request.urlopen(ready, timeout=5) as response:
                json.load(response)
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0

    with Process.of_web(env=env, url=cluster.url("punctual")):
        wait_until(lambda: answer() == 200)
        cluster.stop("immediate")
        wait_until(lambda: answer() == 503)
        cluster.ensure()
        wait_until(lambda: answer() == 200, timeout_s=10)


@long
@needs_own_cluster
def test_results_are_kept_while_the_database_is_read_only(cluster: EmbeddedPostgres) -> None:
    url = cluster.url("punctual")
    with psycopg.connect(url, autocommit=True) as session, worker(url=url) as process:
        session.execute(SETUP)
        session.execute(SUBMIT.replace("sleep_20", "sleep_1000"))
        wait_until(lambda: ask(url, "select count(*) from jobs where status = 'running'") == 1)
        session.execute("alter database punctual set default_transaction_read_only = on")
        session.execute(END_SESSIONS)
        wait_until(lambda: len(process.events("database_away")) >= 2, timeout_s=20)
        session.execute("set default_transaction_read_only = off")
        session.execute("alter database punctual set default_transaction_read_only = off")
        session.execute(END_SESSIONS)

        wait_until(lambda: ask(url, "select count(*) from jobs where status = 'completed'") == 1, timeout_s=20)
        assert ask(url, "select count(*) from job_executions") == 1
        assert len(process.events("database_away")) < 60
