"""How soon a handler starts: after the commit of a submission, and after a due time."""

from __future__ import annotations

import statistics
import time
from typing import Any

from jobs.bench.stage import Say, make_queue, workers
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

#: As a submission does it: the row with its commit, then the hint outside of it.
ONE = """
insert into jobs (id, project_id, queue_id, job_type, payload, status, run_at)
select gen_random_uuid(), project_id, id, 'noop', '{}', %(status)s,
       clock_timestamp() + make_interval(secs => %(ahead_s)s) from queues where id = %(queue)s
returning id
"""
#: The moment behind the commit of a submission, by the clock that also dates the start of its handler.
NOW = "select clock_timestamp()"
HINT = "select pg_notify('punctual', %s)"
STARTS = """
select e.job_id, e.started_at, j.run_at
  from job_executions e join jobs j on j.id = e.job_id where j.queue_id = %s
"""
APART_S, AHEAD_S = 0.06, 1.5


def latency(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """``jobs`` single jobs of each kind for an idle worker."""
    with scratch.connect() as session:
        at_once, due = make_queue(session, "at once"), make_queue(session, "due")
    with workers(scratch, 1):
        say(f"{jobs} single submissions to an idle worker")
        picked_up = late(scratch, at_once, jobs)
        say(f"{jobs} single due times")
        scheduler = scratch.start("runscheduler")
        try:
            while scratch.value("select count(*) from leader_terms") == 0:
                time.sleep(0.02)
            in_time = late(scratch, due, jobs, is_due_later=True)
        finally:
            scheduler.terminate()
            scheduler.wait(30)
    return [
        Figure("pick_up_p50", statistics.median(picked_up), "ms", 2.0, is_most=True),
        Figure("pick_up_p99", statistics.quantiles(picked_up, n=100)[98], "ms", 7.0, is_most=True),
        Figure("due_to_start_p50", statistics.median(in_time), "ms", 50.0, is_most=True),
        Figure("due_to_start_p99", statistics.quantiles(in_time, n=100)[98], "ms", 250.0, is_most=True),
    ]


def late(scratch: Scratch, queue_id: Any, jobs: int, *, is_due_later: bool = False) -> list[float]:
    """Milliseconds to each handler's start: from the commit of its job or, where it has a later one, its due time."""
    kind = {"status": "scheduled", "ahead_s": AHEAD_S} if is_due_later else {"status": "queued", "ahead_s": 0.0}
    committed = {}
    with scratch.connect() as session:
        for _ in range(jobs):
            [(job_id,)] = session.execute(ONE, {"queue": queue_id, **kind}).fetchall()
            [(committed[job_id],)] = session.execute(NOW).fetchall()
            session.execute(HINT, ["due" if is_due_later else f"work {queue_id}"])
            time.sleep(APART_S)
        while scratch.value("select count(*) from jobs where status <> 'completed'"):
            time.sleep(0.02)
        starts = session.execute(STARTS, [queue_id]).fetchall()
    return sorted((at - max(committed[id_], run_at)).total_seconds() * 1000 for id_, at, run_at in starts)
