"""Drain beside millions of ended jobs and plans for later, against one with none of them."""

from __future__ import annotations

from jobs.bench.stage import Say, drain_rate, fill, make_queue
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

#: Plans for later to each ended job.
FUTURE = 0.2


def history(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """``jobs`` ended ones, in the same queue."""
    drained = min(60_000, jobs)
    with scratch.connect() as session:
        queue_id, past = make_queue(session, "history"), make_queue(session, "past")
    drain_rate(scratch, queue_id, min(drained, 5_000))
    say("with an empty past")
    without = drain_rate(scratch, queue_id, drained)
    say(f"filling {jobs:,} ended jobs and {int(jobs * FUTURE):,} for later")
    fill(scratch, queue_id, jobs, status="completed")
    fill(scratch, past, int(jobs * FUTURE), status="scheduled", ahead_s=86_400)
    say("with that past")
    drain_rate(scratch, queue_id, min(drained, 5_000))
    with_history = drain_rate(scratch, queue_id, drained)
    return [
        Figure("drain_without_history", without, "jobs/s"),
        Figure("drain_with_history", with_history, "jobs/s"),
        Figure("with_of_without_history", with_history / without, "", 0.9),
    ]
