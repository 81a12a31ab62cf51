"""The database restarts, crashes and cuts sessions off under load: nothing is lost, and no process needs a restart."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import psycopg
from django.conf import settings

from jobs.prove.stage.breaking import replace
from jobs.prove.stage.counts import COMPLETED, COMPLETED_TWICE
from jobs.prove.stage.process import leave
from jobs.prove.stage.proof import NotPossible, Proof, Size, all_of, at_most, none_of
from jobs.prove.stage.stage import Stage
from jobs.worker.loop import Loop
from scheduler_project.lib.embedded.errors import EmbeddedPostgresError
from scheduler_project.lib.embedded_pg import DURABLE, EmbeddedPostgres
from scheduler_project.lib.figures import Figure

NAME = "punctual"
SETUP = """
insert into organizations (id, name, slug) values (gen_random_uuid(), 'o', 'o');
insert into projects (id, organization_id, name, slug, updated_at)
  select gen_random_uuid(), id, 'p', 'p', now() from organizations;
insert into queues (id, project_id, name, priority, is_paused, paused_reason, visibility_timeout_secs, updated_at)
  select gen_random_uuid(), id, 'q', 0, false, '', 10, now() from projects;
"""
SUBMIT = """
insert into jobs (id, project_id, queue_id, job_type, payload, status, max_attempts_override)
select gen_random_uuid(), project_id, id, 'prove.effect', '{"ms": 5}', 'queued', 100 from queues
"""
CUT = """
select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""
TWICE = (
    "select count(*) from (select from job_executions where status = 'completed' group by job_id having count(*) > 1) x"
)


def run(stage: Stage) -> list[Figure]:
    """In a PostgreSQL of its own: a restart, a crash with an outage, and all sessions cut, while jobs are submitted."""
    with _server(stage) as server:
        stage.move_to(server.url(NAME))
        if stage.start("migrate", "--verbosity", "0").wait(120) != 0:
            raise NotPossible("the tables could not be made in a server of its own")
        stage.do(SETUP)
        producer = _Producer(stage.url)
        crew = [stage.worker(), stage.worker(), stage.scheduler(), stage.scheduler()]
        stage.until_ready(2)
        producer.start()
        worst = 0.0
        for _ in range(stage["rounds"]):
            for fault in ("restart", "crash", "cut"):
                stage.say(f"{fault}: {producer.acknowledged} jobs are acknowledged")
                worst = max(worst, _strike(stage, server, fault))
        producer.over.set()
        producer.join(20)
        stage.until_all_ended(stall_s=40)
        alive = sum(one.is_running for one in crew)
        completed, total = stage.value(COMPLETED), stage.value("select count(*) from jobs")
        twice = stage.value(COMPLETED_TWICE)
        stage.forget_session()
    return [
        all_of("jobs_found", total, producer.acknowledged, "of those acknowledged"),
        all_of("completed", completed, total, "jobs"),
        none_of("completed_twice", twice, "jobs"),
        all_of("alive", alive, len(crew), "processes, never restarted"),
        at_most("at_work_again", worst, 15, "s after the fault, at most"),
    ]


def _strike(stage: Stage, server: EmbeddedPostgres, fault: str) -> float:
    """One fault; seconds until jobs complete again."""
    if fault == "cut":
        stage.do(CUT)
    else:
        stage.forget_session()
        server.stop("fast" if fault == "restart" else "immediate")
        if fault == "crash":
            time.sleep(stage["outage_s"])  # the outage itself
        server.ensure()
    began = time.monotonic()
    grown = stage.value(COMPLETED) + 20
    stage.until(lambda: stage.value(COMPLETED) > grown, 40, f"jobs complete again after a {fault}")
    return time.monotonic() - began


@contextlib.contextmanager
def _server(stage: Stage) -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL of the proof's own, whatever the installation uses."""
    server = EmbeddedPostgres(settings.BASE_DIR, "prove", DURABLE)
    try:
        server.ensure()
    except (EmbeddedPostgresError, OSError) as error:
        raise NotPossible(f"a PostgreSQL of its own can not be had: {error}") from error
    try:
        with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
            admin.execute(f"drop database if exists {NAME} with (force)".encode())
        server.create_database(NAME)
        yield server
    finally:
        stage.close()
        server.stop("immediate")


class _Producer(threading.Thread):
    """Submits at a steady pace, whatever the database does; remembers what was acknowledged."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url, self.acknowledged, self.over = url, 0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            with contextlib.suppress(psycopg.Error), psycopg.connect(self._url, autocommit=True) as session:
                while not self.over.wait(0.02):
                    session.execute(SUBMIT)
                    self.acknowledged += 1


def _without_patience() -> None:
    replace(Loop, "_database_is_away", leave)


PROOF = Proof(
    name="database",
    run=run,
    sizes={"rounds": Size(1, 20), "outage_s": Size(2, 20)},
    breaks={"patience": _without_patience},
)
