"""Each fault is staged for real where that can be done, and the doctor must name it and say what to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.functions import Now

from jobs.doctor.checks import bloat, database, horizon, server
from jobs.models import CircuitBreaker, Job, JobStatDelta, ScheduledJob, Worker
from jobs.services.schedules import create_schedule
from orgs.models import WebhookSecret
from orgs.webhook_secrets import create_secret
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.pg import connect_direct
from scheduler_project.lib.sql import database_now
from tests import distributed
from tests.doctor.conftest import doctor
from tests.doctor.pooler import Pooler
from tests.factories import claim_one, make_job, path_of

Names = Callable[..., None]


def sql(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text)


# -- the installation -------------------------------------------------------------------------------------------------
def test_keys_of_development_on_a_real_database(names: Names, settings: Any) -> None:
    settings.EMBEDDED, settings.IS_TEST, settings.SECRET_KEY = None, False, "development-only-xxx"
    names("configuration", "keys of development")


def test_open_doors_in_production(names: Names, settings: Any) -> None:
    settings.IS_PRODUCTION, settings.METRICS_TOKEN, settings.ALLOWED_HOSTS = True, "", ["*"]
    names("configuration", "/metrics", "warning")
    names("configuration", "any host name", "warning")


def test_handlers_that_can_not_be_read(names: Names, settings: Any) -> None:
    settings.HANDLER_MODULES = ["no_such_module.handlers"]
    names("configuration", "no_such_module.handlers can not be imported")


def test_hints_that_are_off(names: Names, settings: Any) -> None:
    settings.LISTEN = False
    names("configuration", "hints are off", "warning")


def test_a_server_that_is_too_old(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "OLDEST_VERSION", 990_000)
    names("database", "is too old")


def test_a_database_that_is_newer_than_the_code(names: Names) -> None:
    MigrationRecorder(connection).record_applied("jobs", "9999_from_the_future")
    names("migrations", "jobs.9999_from_the_future", "warning")


def test_a_migration_that_is_missing(names: Names) -> None:
    MigrationRecorder(connection).record_unapplied("jobs", "0014_timeout")
    names("migrations", "not applied: jobs.0014_timeout")


@pytest.mark.parametrize(
    ("drop", "name"),
    [
        ("drop index jobs_due", "jobs_due"),
        ("alter table jobs drop constraint jobs_priority", "jobs_priority"),
    ],
)
def test_an_index_or_a_constraint_that_was_dropped(names: Names, drop: str, name: str) -> None:
    sql(drop)
    names("migrations", f"dropped since the migrations: {name}")


# -- PostgreSQL -------------------------------------------------------------------------------------------------------
def test_a_server_that_does_not_write_to_disk(names: Names) -> None:
    with connection.cursor() as cursor:
        cursor.execute("show fsync")
        if cursor.fetchone() != ("off",):
            pytest.skip("this server writes to disk, as it should")
    names("server", "fsync is off")


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("default_transaction_isolation = 'serializable'", "isolation is serializable"),
        ("statement_timeout = 900", "statement_timeout is 900 ms"),
        ("idle_session_timeout = 600000", "idle_session_timeout is 600000 ms"),
    ],
)
def test_settings_of_the_role_that_break_the_engine(names: Names, setting: str, text: str) -> None:
    sql(f"set local {setting}")
    names("server", text)


def test_connections_that_run_out(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS_USED", 0)
    names("server", "connections are in use", "warning")


@pytest.mark.parametrize(("off_s", "level"), [(-5, "warning"), (5, "warning"), (-3_600, "problem"), (90, "problem")])
def test_a_clock_that_is_wrong(names: Names, monkeypatch: pytest.MonkeyPatch, off_s: int, level: str) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + off_s)
    names("clock", f"{abs(off_s)}.", level)


def test_a_pooler_that_swallows_notifications(names: Names, settings: Any) -> None:
    with_pooler(settings, Pooler())
    names("listen", "a hint did not arrive")


def test_a_pooler_that_changes_the_session(names: Names, settings: Any) -> None:
    with_pooler(settings, Pooler(sessions=3))
    names("listen", "reach several sessions")


def with_pooler(settings: Any, pooler: Pooler) -> None:
    way = {"HOST": "127.0.0.1", "PORT": str(pooler.port)}
    plain = {"sslmode": "disable", "gssencmode": "disable"}
    settings.DATABASE_DIRECT = {**settings.DATABASE_DIRECT, **way, "OPTIONS": plain}


def test_a_session_that_is_direct_is_in_order(db: None) -> None:
    assert doctor("--only", "listen") == (
        0,
        {"problems": 0, "warnings": 0, "findings": [{"check": "listen", "level": "ok", "text": "in order", "do": ""}]},
    )


@pytest.fixture
def other_session() -> Iterator[Any]:
    with connect_direct("forgotten report") as session:
        yield session


def test_a_forgotten_transaction(names: Names, other_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(horizon, "NOTABLE_S", 0.0)
    monkeypatch.setattr(horizon, "LONG_S", 0.0)
    other_session.execute("begin isolation level repeatable read")
    other_session.execute("select count(*) from jobs")
    names("horizon", f"session {other_session.info.backend_pid} (user ")
    names("horizon", "forgotten report, idle in transaction)")


def test_a_table_that_nobody_cleans(names: Names) -> None:
    table = "jobs_0" if distributed.IS_DISTRIBUTED else "jobs"  # a partitioned table has no rows of its own
    sql(f"alter table {table} set (autovacuum_enabled = false)")
    names("bloat", f"autovacuum is off for {table}")


def test_a_table_full_of_dead_rows(names: Names, other_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloat, "MOST_DEAD", 400)
    other_session.execute("create table test_bloat (x int) with (autovacuum_enabled = false)")
    try:
        other_session.execute("insert into test_bloat select generate_series(1, 500)")
        other_session.execute("delete from test_bloat")
        other_session.execute("select pg_stat_force_next_flush()")
        other_session.execute("select 1")
        names("bloat", "test_bloat has 500 dead rows", "warning")
    finally:
        other_session.execute("drop table test_bloat")


def test_transaction_numbers_that_run_out(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloat, "MOST_AGE", 0)
    names("bloat", "oldest row was frozen")


@pytest.mark.parametrize(("ahead", "text", "level"), [(0, "this month", "problem"), (1, "the next month", "warning")])
def test_a_partition_that_is_missing(names: Names, ahead: int, text: str, level: str) -> None:
    month = database_now().replace(day=1) + timedelta(days=32 * ahead)
    sql(f"drop table job_logs_{month:%Y_%m}")
    names("partitions", f"job_logs has no partition for {text}", level)


# -- processes --------------------------------------------------------------------------------------------------------
def test_nobody_leads(names: Names) -> None:
    names("leader", "no scheduler leads")


def test_a_leader_that_does_nothing(names: Names, other_session: Any, settings: Any) -> None:
    other_session.execute("select pg_advisory_lock(%s)", [settings.SCHEDULER_ADVISORY_LOCK_ID])
    names("leader", f"session {other_session.info.backend_pid} holds the leader's lock and has not renewed")


def test_due_jobs_that_are_not_queued(names: Names, queue: Queue) -> None:
    job = make_job(queue, delay_s=60)
    Job.objects.filter(pk=job.pk).update(run_at=Now() - timedelta(minutes=5))
    names("leader", "1 scheduled jobs are due")


def test_statistics_that_are_behind(names: Names, queue: Queue) -> None:
    JobStatDelta.objects.create(
        project_id=queue.project_id, queue_id=queue.pk, job_type="x", at=Now() - timedelta(hours=1), created=1
    )
    names("leader", "statistics are behind", "warning")


def make_worker(**fields: Any) -> Worker:
    return Worker.objects.create(
        **{"hostname": "mailer-7", "pid": 5, "version": "0.1.0", "max_concurrency": 4, **fields}
    )


def test_a_worker_that_fell_silent(names: Names) -> None:
    make_worker(last_seen_at=Now() - timedelta(minutes=10))
    names("workers", "worker mailer-7:5 was last seen", "warning")


def test_workers_of_another_release(names: Names) -> None:
    make_worker(version="0.0.9")
    names("workers", "other releases run: 0.0.9", "warning")


# -- work -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("worker", [None, {"subscribed_queues": ["a/b/c"]}, {"status": "draining"}])
def test_a_queue_without_a_worker(names: Names, queue: Queue, worker: dict[str, Any] | None) -> None:
    make_job(queue)
    if worker is not None:
        make_worker(**worker)
    names("queues", f"no worker serves {path_of(queue)}")


def test_a_queue_that_is_paused_for_long(names: Names, queue: Queue) -> None:
    job = make_job(queue)
    Job.objects.filter(pk=job.pk).update(run_at=Now() - timedelta(days=3))
    Queue.objects.update(is_paused=True)
    names("queues", f"{path_of(queue)} is paused, and its oldest job waits for 72 h", "warning")


def test_a_lease_that_nobody_ends(names: Names, queue: Queue) -> None:
    job = make_job(queue)
    claim_one(queue)
    Job.objects.filter(pk=job.pk).update(lease_expires_at=Now() - timedelta(minutes=10))
    names("leases", f"1 jobs are held by leases that ran out more than 40 s ago, such as {job.pk}")


@pytest.fixture
def schedule(queue: Queue) -> ScheduledJob:
    return create_schedule(queue, name="nightly", cron_expression="0 3 * * *", job_type="noop")


def test_a_schedule_that_is_late(names: Names, schedule: ScheduledJob) -> None:
    ScheduledJob.objects.update(next_run_at=Now() - timedelta(minutes=10))
    names("schedules", f"schedule nightly ({schedule.pk}) is late by 600 s")


def test_a_schedule_that_can_not_be_fired(names: Names, schedule: ScheduledJob) -> None:
    ScheduledJob.objects.update(last_error="job_type: is not known")
    names("schedules", "could not be fired: job_type: is not known", "warning")


def test_times_of_old_zone_data(names: Names, schedule: ScheduledJob) -> None:
    ScheduledJob.objects.update(tzdata_version="2025.2")
    names("timezones", "1 schedules were computed with time-zone data 2025.2", "warning")


def test_a_zone_that_does_not_exist(names: Names, schedule: ScheduledJob) -> None:
    ScheduledJob.objects.update(timezone="Mars/Olympus")
    names("timezones", "schedules name the zone Mars/Olympus")


def test_zone_data_that_is_missing_or_old(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.doctor.checks.timezones.tzdata_version", lambda: "2019.3")
    names("timezones", "the time-zone data is of 2019", "warning")
    monkeypatch.setattr("jobs.doctor.checks.timezones.tzdata_version", lambda: "")
    names("timezones", "tzdata is not installed")


def test_a_circuit_that_stays_open(names: Names, project: Any) -> None:
    opened = Now() - timedelta(hours=5)
    CircuitBreaker.objects.create(project_id=project.pk, name="http.webhook shop:443", state="open", opened_at=opened)
    names("circuits", "the circuit of http.webhook shop:443 is open since", "warning")


def test_secrets_whose_key_is_gone(names: Names, project: Any, settings: Any) -> None:
    key = settings.SECRET_KEY
    settings.SECRET_KEY = "another-key-" + "z" * 40
    lost = create_secret(project, by=None).row
    settings.SECRET_KEY = key
    assert WebhookSecret.objects.count() == 1
    names("sealed", f"1 webhook secrets can not be opened, such as {lost.pk}")


def test_a_check_that_breaks_is_named_and_hides_no_other(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.doctor.checks.leases.database_now", lambda: uuid7() + None)  # type: ignore[operator]
    code, answer = doctor()
    found = {one["check"]: one["text"] for one in answer["findings"]}
    assert code == 1
    assert found["leases"].startswith("could not be looked at: TypeError")
    assert "circuits" in found
