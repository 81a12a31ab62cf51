"""Who leads, and jobs that come due while that changes."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.prove.stage.process import Process
from jobs.prove.stage.stage import Stage
from queues.models import Queue

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
NOT_BEGUN = "select count(*) from jobs where status = 'scheduled'"


def leader_of(stage: Stage, schedulers: Sequence[Process]) -> Process:
    """The one that leads, once all of them are there."""
    stage.until(lambda: stage.value(LISTENERS) >= len(schedulers), 30, "both schedulers are there")
    pid = stage.until(lambda: stage.value(LEADER), 30, "somebody leads")
    return next(one for one in schedulers if one.pid == pid)


def submit_due(stage: Stage, queue: Queue, mark: int) -> None:
    """Jobs that come due one after the other from now on; their mark is their priority."""
    for number in range(stage["due"]):
        stage.submit(queue, 1, delay_s=SPAN_S * number / stage["due"], priority=mark)


def let_pass(stage: Stage, seconds: float) -> None:
    """The moment of the fault is what matters; nothing is waited for."""
    until = stage.value("select clock_timestamp() + make_interval(secs => %s)", seconds)
    stage.until(lambda: stage.value("select clock_timestamp() > %s", until), seconds + 5, "time passes")


def until_begun(stage: Stage) -> None:
    """Wait until all that was due has been done."""
    left = "select count(*) from jobs where completed_at is null"
    stage.until(lambda: not stage.value(left), 25, "all that was due begins")


def lateness(stage: Stage, mark: int) -> list[float]:
    """How late each job of a mark began, in seconds, by the handler's own trace; the least first."""
    return sorted(row[0] for row in stage.rows(LATE, mark))
