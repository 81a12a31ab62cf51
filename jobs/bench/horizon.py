"""Drain while an old snapshot stays open, so that no dead entry of the index can be removed."""

from __future__ import annotations

import time

import psycopg

from jobs.bench.stage import Say, drain_rate, make_queue
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

#: For how long drains go on under the snapshot before the one that counts.
HELD_S = 90


def horizon(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """Drains without it; then under it for a while, each behind the dead entries of all before it."""
    with scratch.connect() as session:
        queue_id = make_queue(session, "horizon")
    drain_rate(scratch, queue_id, min(jobs, 5_000))
    say("without an old snapshot")
    free = drain_rate(scratch, queue_id, jobs)
    dead = 0
    with psycopg.connect(scratch.url) as old:
        old.execute("set transaction isolation level repeatable read")
        old.execute("select count(*) from queues")
        began = time.monotonic()
        while time.monotonic() - began < HELD_S * min(1.0, jobs / 60_000):
            say(f"under an old snapshot for {time.monotonic() - began:.0f} s, behind {dead:,} dead entries")
            drain_rate(scratch, queue_id, jobs)
            dead += jobs
        say(f"the one that counts, behind {dead:,} dead entries")
        held = drain_rate(scratch, queue_id, jobs)
        old.rollback()
    return [
        Figure("drain", free, "jobs/s"),
        Figure("drain_under_old_snapshot", held, "jobs/s"),
        Figure("dead_entries", dead),
        Figure("old_snapshot_of_free", held / free, "", 0.8),
    ]
