"""The jobs of one batch against the same jobs without."""

from __future__ import annotations

import time

from jobs.bench.stage import Say, drain_of, drain_rate, fill, make_queue, pause
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

BATCH = """
insert into job_batches (id, project_id, name, total_jobs, completed_jobs, failed_jobs, status, updated_at)
select gen_random_uuid(), id, 'bench', 0, 0, 0, 'open', now() from projects returning id
"""
WORKERS = 4


def batch(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """Four workers, and a scheduler that ends the batch."""
    with scratch.connect() as session:
        plain, batched = make_queue(session, "plain"), make_queue(session, "batched")
        row = session.execute(BATCH).fetchone()
    scheduler = scratch.start("runscheduler")
    try:
        # The first drain of a database is the slowest, whatever it drains: not the one to compare with.
        drain_rate(scratch, plain, jobs, processes=WORKERS)
        say(f"without a batch, {WORKERS} workers")
        without = drain_rate(scratch, plain, jobs, processes=WORKERS)
        say(f"as one batch, {WORKERS} workers")
        pause(scratch, batched)
        fill(scratch, batched, jobs, batch=row[0] if row else None)
        with scratch.connect() as session:
            session.execute("update job_batches set status = 'running'")
        with_batch = drain_of(scratch, [batched], jobs, WORKERS).rate
        while scratch.value("select ended_at from job_batches") is None:
            time.sleep(0.05)
    finally:
        scheduler.terminate()
        scheduler.wait(30)
    counted = scratch.value("select completed_jobs from job_batches")
    return [
        Figure("drain_without_batch", without, "jobs/s"),
        Figure("drain_as_batch", with_batch, "jobs/s"),
        Figure("batch_of_plain", with_batch / without, "", 0.9),
        Figure("batch_counted", counted, "jobs", float(jobs)),
    ]
