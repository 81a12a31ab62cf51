"""The database restarts, crashes, cuts sessions off and fails over: nothing is lost, no process needs a restart."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Any

import psycopg
from django.conf import settings

from jobs.prove.stage.breaking import replace
from jobs.prove.stage.counts import COMPLETED, COMPLETED_TWICE
from jobs.prove.stage.pair import Pair
from jobs.prove.stage.process import leave
from jobs.prove.stage.proof import Proof, Size, all_of, at_most, none_of
from jobs.prove.stage.server import own_server
from jobs.prove.stage.stage import Stage
from jobs.worker.loop import Loop
from scheduler_project.lib import pg
from scheduler_project.lib.embedded.errors import EmbeddedPostgresError
from scheduler_project.lib.embedded_pg import EmbeddedPostgres
from scheduler_project.lib.figures import Figure

SUBMIT = """
insert into jobs (id, project_id, queue_id, job_type, payload, status, max_attempts_override)
select gen_random_uuid(), project_id, id, 'prove.effect', '{"ms": 5}', 'queued', 100 from queues returning id::text
"""
MISSING = """
select count(*) from unnest(%s::uuid[]) as acknowledged (id)
 where not exists (select from jobs where jobs.id = acknowledged.id)
"""
CUT = """
select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""
REPLICA = "prove-replica"
#: What a commit waits for: without it the primary's word is its own.
SYNCHRONOUS = {"synchronous_standby_names": "*"}


def run(stage: Stage) -> list[Figure]:
    """In a PostgreSQL of its own: restarts, crashes with an outage, cut sessions, fail-overs, as jobs are submitted."""
    with own_server(stage, "prove-database") as server, contextlib.ExitStack() as at_end:
        at_end.callback(EmbeddedPostgres(settings.BASE_DIR, REPLICA).remove)
        at_end.callback(stage.close)
        pair = _pair(stage, server)
        if pair:
            stage.move_to(pair.url)
        stage.queue(lease_s=10)
        producer = _Producer(stage.url)
        crew = [stage.worker(), stage.worker(), stage.scheduler(), stage.scheduler()]
        stage.until_ready(2)
        producer.start()
        worst = changed = 0.0
        for _ in range(stage["rounds"]):
            for fault in ("restart", "crash", "cut"):
                stage.say(f"{fault}: {len(producer.acknowledged)} jobs are acknowledged")
                worst = max(worst, _strike(stage, server, fault))
        if pair:
            for number in range(stage["failovers"]):
                stage.say(f"fail-over: {len(producer.acknowledged)} jobs are acknowledged")
                changed = max(changed, _fail_over(stage, pair, is_first=number == 0))
        producer.over.set()
        producer.join(20)
        stage.until_all_ended(stall_s=40)
        alive = sum(one.is_running for one in crew)
        completed, total = stage.value(COMPLETED), stage.value("select count(*) from jobs")
        missing, twice = stage.value(MISSING, producer.acknowledged), stage.value(COMPLETED_TWICE)
    return [
        none_of("missing", missing, f"of {len(producer.acknowledged)} jobs acknowledged"),
        all_of("completed", completed, total, "jobs"),
        none_of("completed_twice", twice, "jobs"),
        all_of("alive", alive, len(crew), "processes, never restarted"),
        at_most("at_work_again", worst, 15, "s after the fault, at most"),
        *([at_most("after_fail_over", changed, 15, "s after the promotion, at most")] if pair else []),
    ]


def _pair(stage: Stage, server: EmbeddedPostgres) -> Pair | None:
    """The server and a replica of it; None, and it is said why, where that can not be had."""
    try:
        return Pair(server, REPLICA, SYNCHRONOUS)
    except (EmbeddedPostgresError, OSError) as error:
        stage.not_staged(f"a fail-over to a replica: {error}")
        return None


def _fail_over(stage: Stage, pair: Pair, *, is_first: bool) -> float:
    """Kill the primary and promote the replica; seconds until jobs complete again."""
    if not is_first:
        pair.renew()
    stage.forget_session()
    pair.fail_over()
    return _until_at_work(stage, "fail-over")


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
    return _until_at_work(stage, fault)


def _until_at_work(stage: Stage, fault: str) -> float:
    began = time.monotonic()
    grown = stage.value(COMPLETED) + 20
    stage.until(lambda: stage.value(COMPLETED) > grown, 40, f"jobs complete again after a {fault}")
    return time.monotonic() - began


class _Producer(threading.Thread):
    """Submits at a steady pace, whatever the database does; remembers what was acknowledged."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url, self.over = url, threading.Event()
        self.acknowledged: list[str] = []

    def run(self) -> None:
        while not self.over.wait(0.05):
            with contextlib.suppress(psycopg.Error), psycopg.connect(self._url, autocommit=True) as session:
                while not self.over.wait(0.02):
                    self.acknowledged += [id_ for (id_,) in session.execute(SUBMIT).fetchall()]


def _without_patience() -> None:
    replace(Loop, "_database_is_away", leave)


def _without_second_address() -> None:
    known = pg.settings_from_url

    def of_first(url: str) -> dict[str, Any]:
        found = known(url)
        return {**found, **{part: found[part].split(",")[0] for part in ("HOST", "PORT")}}

    replace(pg, "settings_from_url", of_first)


def _without_synchronous() -> None:
    replace(sys.modules[__name__], "SYNCHRONOUS", {})


PROOF = Proof(
    name="database",
    run=run,
    sizes={"rounds": Size(1, 20), "outage_s": Size(2, 20), "failovers": Size(1, 5)},
    breaks={
        "patience": _without_patience,
        "second_address": _without_second_address,
        "synchronous": _without_synchronous,
    },
)
