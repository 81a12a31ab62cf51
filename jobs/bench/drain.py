"""No-op jobs by one and two workers, against the ceiling of the same run."""

from __future__ import annotations

from functools import partial

from jobs.bench.ceiling import ceiling
from jobs.bench.stage import Drain, Say, drain_of, drain_rate, fill, in_turns, make_queue, pause
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

ROUNDS = 3
#: Microseconds of processor time that one no-op job may cost the worker, and the worker and the server together.
WORKER_US, TOGETHER_US = 45.0, 80.0


def drain(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """Three rounds, in turns with the ceiling; and what a job costs in processor time."""
    with scratch.connect() as session:
        queue_id = make_queue(session, "drain")
    drain_rate(scratch, queue_id, min(jobs, 5_000))
    costs: list[Drain] = []

    def by_workers(processes: int) -> float:
        pause(scratch, queue_id)
        fill(scratch, queue_id, jobs)
        found = drain_of(scratch, [queue_id], jobs, processes)
        if processes == 1:
            costs.append(found)
        return found.rate

    figures = []
    for processes, target in ((1, 0.6), (2, 0.55)):
        say(f"{jobs:,} jobs, {processes} worker process(es) and as many clients of the ceiling, in turns")
        limit = partial(ceiling, scratch.url, jobs=jobs, clients=processes)
        most, rate = in_turns(ROUNDS, limit, partial(by_workers, processes))
        figures += [
            Figure(f"ceiling_{processes}", most, "jobs/s"),
            Figure(f"drain_{processes}", rate, "jobs/s"),
            Figure(f"drain_{processes}_of_ceiling", rate / most, "", target),
        ]
    say("async handlers")
    rate = drain_rate(scratch, queue_id, jobs, job_type="noop.async")
    worker_us = min(cost.worker_us for cost in costs)
    together_us = min(cost.worker_us + cost.server_us for cost in costs)
    return [
        *figures,
        Figure("drain_async_1", rate, "jobs/s"),
        Figure("worker_cpu", worker_us, "us/job", WORKER_US, is_most=True),
        Figure("worker_and_server_cpu", together_us, "us/job", TOGETHER_US, is_most=True),
    ]
