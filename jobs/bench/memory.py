"""A worker's memory after the first jobs and after the last."""

from __future__ import annotations

import time

import psutil

from jobs.bench.stage import IS_LEFT, RELEASE, Say, fill, make_queue, pause, workers
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

MIB = 1024 * 1024
#: What it may grow from the first tenth to the end: "flat", with room for the allocator.
FLAT = 1.1


def memory(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """One worker with 100 seats drains ``jobs`` no-op jobs."""
    with scratch.connect() as session:
        queue_id = make_queue(session, "memory")
        pause(scratch, queue_id)
        say(f"filling {jobs:,} jobs")
        fill(scratch, queue_id, jobs)
        with workers(scratch, 1, "--concurrency", "100") as [started]:
            worker = psutil.Process(started.pid)
            session.execute(RELEASE, [[queue_id]])
            count = "select count(*) from job_executions"
            while int(scratch.value(count)) < jobs // 10:
                time.sleep(0.2)
            first = worker.memory_info().rss / MIB
            say(f"{first:.0f} MiB after a tenth of them")
            while (left := session.execute(IS_LEFT, {"queues": [queue_id]}).fetchone()) and left[0]:
                time.sleep(0.5)
            last = worker.memory_info().rss / MIB
    return [
        Figure("memory_after_a_tenth", first, "MiB"),
        Figure("memory_at_the_end", last, "MiB", 150.0, is_most=True),
        Figure("memory_growth", last / first, "", FLAT, is_most=True),
    ]
