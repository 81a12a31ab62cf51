"""The first jobs of a long line against a short line."""

from __future__ import annotations

import time

from jobs.bench.stage import RELEASE, Say, drain_rate, fill, make_queue, pause, workers
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

SHORT, WARM_UP, COUNTED_S = 10_000, 5_000, 5


def backlog(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """Drains of 10,000 jobs, and five seconds of a line of ``jobs``."""
    with scratch.connect() as session:
        short, long = make_queue(session, "short"), make_queue(session, "long")
    drain_rate(scratch, short, min(jobs, WARM_UP))
    say(f"{SHORT:,} waiting")
    few = drain_rate(scratch, short, SHORT)
    say(f"{jobs:,} waiting: filling")
    pause(scratch, long)
    fill(scratch, long, jobs)
    done = "select count(*) from job_executions e join jobs j on j.id = e.job_id where j.queue_id = %s"
    with scratch.connect() as session, workers(scratch, 1, "--concurrency", "100"):
        say(f"{jobs:,} waiting: draining for a while")
        session.execute(RELEASE, [[long]])
        while not (row := session.execute(done, [long]).fetchone()) or row[0] < min(WARM_UP, jobs // 4):
            time.sleep(0.1)
        began, first = time.monotonic(), row[0]
        time.sleep(COUNTED_S * min(1.0, jobs / 100_000))
        row = session.execute(done, [long]).fetchone()
        many = ((row[0] if row else 0) - first) / (time.monotonic() - began)
    return [
        Figure("drain_10k_waiting", few, "jobs/s"),
        Figure(f"drain_{jobs}_waiting", many, "jobs/s"),
        Figure("long_of_short", many / few, "", 0.9),
    ]
