"""Work in a thousand queues against the same work in one."""

from __future__ import annotations

from jobs.bench.stage import Say, drain_of, drain_rate, fill, in_turns, make_queue, pause
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

ROUNDS, QUEUES = 3, 1_000


def many_queues(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """``jobs`` in one queue, then spread over a thousand, in turns."""
    each = max(1, jobs // QUEUES)
    with scratch.connect() as session:
        one = make_queue(session, "one")
        say(f"making {QUEUES:,} queues")
        several = [make_queue(session, f"of many {n}") for n in range(QUEUES)]
    drain_rate(scratch, one, min(jobs, 5_000))

    def spread() -> float:
        for queue_id in several:
            pause(scratch, queue_id)
        fill(scratch, several, each)
        return drain_of(scratch, several, each * QUEUES).rate

    say(f"{jobs:,} jobs in one queue and in {QUEUES:,}, in turns")
    together, apart = in_turns(ROUNDS, lambda: drain_rate(scratch, one, each * QUEUES), spread)
    return [
        Figure("drain_one_queue", together, "jobs/s"),
        Figure("drain_many_queues", apart, "jobs/s"),
        Figure("many_of_one_queue", apart / together, "", 0.7),
    ]
