"""A job begins soon after it is due, and soon after it was submitted, at the product's own settings."""

from __future__ import annotations

import statistics

from jobs import hints
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.proof import Proof, Size, at_most
from jobs.prove.stage.stage import Stage
from queues.models import Queue
from scheduler_project.lib.figures import Figure

DUE, AT_ONCE = 1, 2
LATE = """
select extract(epoch from e.at - greatest(j.run_at, j.created_at))::float8 * 1000
  from jobs j join prove_effects e on e.job_id = j.id and e.kind = 'start' where j.priority = %s
"""
BEGUN = "select count(*) from prove_effects where kind = 'end'"


def run(stage: Stage) -> list[Figure]:
    """Single jobs to idle workers: some at once, one after the other; some that come due later."""
    queue = stage.queue(lease_s=60)
    stage.scheduler()
    stage.worker(10)
    stage.until_ready(1)
    stage.until(lambda: stage.value("select count(*) from leader_terms"), 30, "a scheduler leads")
    _one(stage, queue, 0)  # the first job of a process is the slowest, whatever it is
    count = stage["jobs"]
    stage.say(f"{count} jobs, one after the other")
    for _ in range(count):
        _one(stage, queue, AT_ONCE)
    stage.say(f"{count} jobs that come due")
    done = stage.value(BEGUN)
    for number in range(count):
        submit_job(queue, NewJob(job_type="prove.effect", payload={}, delay_s=1.0 + number * 0.05, priority=DUE))
    stage.until(lambda: stage.value(BEGUN) == done + count, 30 + count * 0.05, "all that is due begins")
    at_once = sorted(row[0] for row in stage.rows(LATE, AT_ONCE))
    due = sorted(row[0] for row in stage.rows(LATE, DUE))
    return [
        at_most("submitted_to_start_p50", statistics.median(at_once), 150, "ms"),
        Figure("submitted_to_start_p99", statistics.quantiles(at_once, n=100)[98], "ms"),
        at_most("due_to_start_p50", statistics.median(due), 150, "ms"),
        at_most("due_to_start_p99", statistics.quantiles(due, n=100)[98], 1_000, "ms"),
    ]


def _one(stage: Stage, queue: Queue, mark: int) -> None:
    done = stage.value(BEGUN)
    submit_job(queue, NewJob(job_type="prove.effect", payload={}, priority=mark))
    stage.until(lambda: stage.value(BEGUN) > done, 20, "the job begins", every_s=0.005)


def _without_hints() -> None:
    replace(hints, "_send", lambda _topic: None)


PROOF = Proof(
    name="latency",
    run=run,
    sizes={"jobs": Size(60, 2_000)},
    breaks={"hints": _without_hints},
    env={"APP_WORKER_POLL_INTERVAL_MS": "1000", "APP_SCHEDULER_POLL_INTERVAL_MS": "2000"},
)
