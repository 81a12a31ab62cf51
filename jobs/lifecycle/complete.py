"""complete: an attempt is settled inside the transaction in which its handler wrote, so that both commit or neither."""

from __future__ import annotations

import time
from collections.abc import Sequence

from jobs.events import jobs_changed
from jobs.lease import Ending
from jobs.lifecycle.exchange import LogLine, lines_call
from jobs.lifecycle.settle import Settled, settle_calls, settled_of
from jobs.models import Job
from scheduler_project.lib.sql import run_together
from scheduler_project.lib.statements import Call

#: A worker that freezes between this and its commit holds the job's row; the server ends its transaction then.
IDLE_MS = 30_000


def complete(ending: Ending, lines: Sequence[LogLine]) -> Settled:
    """Settle one attempt in the caller's transaction, with the lines it has logged: behind it they would be refused.

    The job is locked from here to the commit. If the lease is lost nothing is written; the caller rolls back.
    """
    before = [Job.claims.end_soon(idle_ms=str(IDLE_MS)), *_lines(lines)]
    answers = run_together([*before, *settle_calls([ending])])
    settled = settled_of([ending], answers[len(before) :])
    jobs_changed(settled.statuses)
    return settled


def _lines(lines: Sequence[LogLine]) -> list[Call]:
    return [lines_call(lines, time.monotonic())] if lines else []
