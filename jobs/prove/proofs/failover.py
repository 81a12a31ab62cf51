"""The leading scheduler is killed or freezes: another leads soon, and what was due is neither lost nor doubled."""

from __future__ import annotations

import random
import statistics
from functools import partial

from jobs.prove.stage.breaking import replace
from jobs.prove.stage.counts import STARTED_TWICE
from jobs.prove.stage.process import Process
from jobs.prove.stage.proof import Proof, Size, at_most, none_of
from jobs.prove.stage.stage import Stage
from jobs.scheduler import daemon
from jobs.scheduler.leader import Leadership
from queues.models import Queue
from scheduler_project.lib.figures import Figure

#: Jobs come due over so long, and the leader goes in the middle of it.
SPAN_S = 2.0
LEADER = """
select term.pid from leader_terms term join pg_locks held on held.pid = term.backend_pid
 where held.locktype = 'advisory' and held.objid = 42 and held.granted
   and held.database = (select oid from pg_database where datname = current_database())
 order by term.id desc limit 1
"""
LISTENERS = """
select count(*) from pg_stat_activity
 where datname = current_database() and application_name = 'punctual scheduler listener'
"""
LATE = """
select extract(epoch from min(e.at) - j.run_at)::float8
  from jobs j join prove_effects e on e.job_id = j.id and e.kind = 'start'
 where j.priority = %s group by j.id, j.run_at
"""
KILLED, FROZEN = 1, 2


def run(stage: Stage) -> list[Figure]:
    """Kill and freeze leaders while jobs come due; how late each began, by the handler's own trace."""
    queue = stage.queue(lease_s=60)
    stage.worker(10)
    pair = [stage.scheduler(), stage.scheduler()]
    lot = random.Random(5)  # noqa: S311 - the moment of the fault
    for number in range(1, stage["kills"] + 1):
        stage.say(f"kill {number} of {stage['kills']}")
        leader = _leader(stage, pair)
        _submit(stage, queue, KILLED)
        _pass(stage, lot.uniform(0.3, SPAN_S - 0.5))
        pair[pair.index(leader)].kill()
        pair[pair.index(leader)] = stage.scheduler()
        _until_begun(stage)
    for number in range(1, stage["freezes"] + 1):
        stage.say(f"freeze {number} of {stage['freezes']}")
        leader = _leader(stage, pair)
        _submit(stage, queue, FROZEN)
        leader.freeze()
        _until_begun(stage)
        leader.resume()
        stage.until(partial(leader.events, "leadership_lost"), 20, "the one that froze learns that it leads no more")
    killed = sorted(row[0] for row in stage.rows(LATE, KILLED))
    frozen = [row[0] for row in stage.rows(LATE, FROZEN)]
    return [
        at_most("late_p95", statistics.quantiles(killed, n=20)[-1] * 1000, 1_000, "ms after a kill"),
        Figure("late_max", killed[-1] * 1000, "ms after a kill"),
        at_most("late_max_frozen", max(frozen), 15, "s after a freeze"),
        none_of("missing", stage.value("select count(*) from jobs where status = 'scheduled'"), "jobs"),
        none_of("doubled", stage.value(STARTED_TWICE), "jobs"),
    ]


def _leader(stage: Stage, pair: list[Process]) -> Process:
    stage.until(lambda: stage.value(LISTENERS) >= len(pair), 30, "both schedulers are there")
    pid = stage.until(lambda: stage.value(LEADER), 30, "somebody leads")
    return next(one for one in pair if one.pid == pid)


def _submit(stage: Stage, queue: Queue, mark: int) -> None:
    for number in range(stage["due"]):
        stage.submit(queue, 1, delay_s=SPAN_S * number / stage["due"], priority=mark)


def _pass(stage: Stage, seconds: float) -> None:
    """The moment of the fault is what is drawn by lot; nothing is waited for."""
    until = stage.value("select clock_timestamp() + make_interval(secs => %s)", seconds)
    stage.until(lambda: stage.value("select clock_timestamp() > %s", until), seconds + 5, "time passes")


def _until_begun(stage: Stage) -> None:
    left = "select count(*) from jobs where completed_at is null"
    stage.until(lambda: not stage.value(left), 25, "all that was due begins")


def _without_standby() -> None:
    replace(daemon, "STANDBY_S", 60.0)


def _without_deposing() -> None:
    replace(Leadership, "depose_frozen", lambda _self: None)


PROOF = Proof(
    name="failover",
    run=run,
    sizes={"kills": Size(3, 50), "freezes": Size(1, 10), "due": Size(40, 100)},
    breaks={"standby": _without_standby, "deposing": _without_deposing},
)
