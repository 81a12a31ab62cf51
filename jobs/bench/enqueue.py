"""Submitting: one by one with a commit each, and many at once, in proportion to the barest way to write such rows."""

from __future__ import annotations

import json
import sys

from jobs.bench.stage import Say, make_queue
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

PROGRAM = [sys.executable, "-m", "jobs.bench.enqueue_here"]


def enqueue(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """One process that submits ``jobs`` jobs in bulk, and a twentieth of that one by one."""
    with scratch.connect() as session:
        queue_id = make_queue(session, "enqueue")
    say(f"{jobs:,} jobs in bulk and {jobs // 20:,} one by one, in turns with the same rows by COPY and by INSERT")
    asked = json.dumps({"queue_id": str(queue_id), "jobs": jobs})
    found = json.loads(scratch.run(PROGRAM, asked, DJANGO_SETTINGS_MODULE="scheduler_project.settings"))
    return [
        Figure("enqueue_bulk", found["bulk"], "jobs/s"),
        Figure("copy", found["copy"], "rows/s"),
        Figure("bulk_of_copy", found["bulk"] / found["copy"], "", 0.5),
        Figure("enqueue_single", found["single"], "jobs/s"),
        Figure("bare_insert", found["insert"], "rows/s"),
        Figure("single_of_insert", found["single"] / found["insert"], "", 0.65),
    ]
