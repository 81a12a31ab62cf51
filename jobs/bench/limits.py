"""A queue limited to 100 against one without a limit."""

from __future__ import annotations

from functools import partial

from jobs.bench.stage import Say, drain_rate, in_turns, make_queue
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

ROUNDS = 3


def limits(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """The same jobs through both, in turns."""
    with scratch.connect() as session:
        free, limited = make_queue(session, "free"), make_queue(session, "limited", 100)
    drain_rate(scratch, free, min(jobs, 5_000))
    say(f"{jobs:,} jobs through an unlimited queue and one limited to 100, in turns")
    without, with_limit = in_turns(
        ROUNDS, partial(drain_rate, scratch, free, jobs), partial(drain_rate, scratch, limited, jobs)
    )
    return [
        Figure("drain_unlimited", without, "jobs/s"),
        Figure("drain_limited_100", with_limit, "jobs/s"),
        Figure("limited_of_unlimited", with_limit / without, "", 0.8),
    ]
