"""Does a scheduler lead, and does it do its work?"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from jobs.doctor import catalog
from jobs.doctor.finding import Findings, problem, warning
from jobs.models import Job, JobStatDelta, LeaderTerm
from jobs.selectors.worker_board import leader_now
from scheduler_project.lib.sql import database_now

MOST = 1_000
LATE = timedelta(seconds=30)
#: Counted in a moment; more than this is behind.
FOLDED_WITHIN = timedelta(seconds=120)


def look() -> Findings:
    """The lock, the term, and what only a leader does."""
    now = database_now()
    holder = catalog.holder_of_lock(settings.SCHEDULER_ADVISORY_LOCK_ID)
    if holder is None:
        yield problem(
            "no scheduler leads: nothing is promoted, fired or rescued",
            "start manage.py runscheduler, two of them; if one runs, see the check listen",
        )
    elif leader_now(now) is None:
        term = LeaderTerm.objects.order_by("-id").first()
        since = "ever" if term is None else f"since {term.renewed_at:%H:%M:%S} UTC"
        yield problem(
            f"session {holder} holds the leader's lock and has not renewed its term {since}",
            f"a standby scheduler deposes it; or end it: select pg_terminate_backend({holder})",
        )
    late = Job.objects.due().filter(run_at__lt=now - LATE)
    if (count := late[:MOST].count()) > 0:
        many = f"{count}" if count < MOST else f"at least {MOST}"
        yield problem(
            f"{many} scheduled jobs are due for {LATE.seconds} s and more and were not queued",
            "look at the leader's log for row_set_aside and database_away",
        )
    if JobStatDelta.objects.filter(at__lt=now - FOLDED_WITHIN)[:1].exists():
        yield warning("statistics are behind: dashboards and autoscalers see old numbers", "look at the leader's log")
