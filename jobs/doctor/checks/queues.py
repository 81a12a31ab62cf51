"""Queues with work that nobody does."""

from __future__ import annotations

from datetime import timedelta

from jobs.doctor.finding import Findings, problem, warning
from jobs.selectors.backlog import waiting_queues
from scheduler_project.lib.sql import database_now

LONG_PAUSE = timedelta(hours=24)
MOST = 50


def look() -> Findings:
    """Queues without a worker, and such as are paused for long with work in them."""
    now = database_now()
    for queue in waiting_queues(limit=MOST):
        waits_s = (now - queue.oldest_run_at).total_seconds()
        if queue.is_paused:
            if waits_s > LONG_PAUSE.total_seconds():
                yield warning(
                    f"{queue.path} is paused, and its oldest job waits for {waits_s / 3600:.0f} h",
                    "resume the queue, or cancel its jobs",
                )
        elif not queue.workers:
            yield problem(
                f"no worker serves {queue.path}, where jobs wait for {waits_s:.0f} s",
                f"start manage.py runworker, or one with --queues {queue.path}",
            )
