"""Is the work being done? Asked by /readyz, so it costs little and names nothing that belongs to a customer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

from jobs.models import Job, JobExecution, ScheduledJob
from jobs.selectors.backlog import Waiting, waiting_queues
from jobs.selectors.worker_board import leader_now
from scheduler_project.lib.ids import first_id_at
from scheduler_project.lib.sql import database_now

#: Work that waits so long, while nothing at all is claimed, is work that nobody does.
STALLED_AFTER = timedelta(seconds=60)
#: What the leader does in time, give or take.
LATE = timedelta(seconds=30)
MOST_QUEUES = 1_000


@dataclass(frozen=True, slots=True)
class Condition:
    """``ready``, ``degraded`` (something is late or missing) or ``stalled`` (nobody works); and why, as codes."""

    status: str
    reasons: tuple[str, ...] = ()


def condition() -> Condition:
    """How the installation is now."""
    now = database_now()
    swept = timedelta(seconds=2 * settings.SCHEDULER_LEASE_REAPER_INTERVAL_SECS + 10)
    waiting = [
        q for q in waiting_queues(limit=MOST_QUEUES) if not q.is_paused and now - q.oldest_run_at > STALLED_AFTER
    ]
    late_schedules = ScheduledJob.objects.filter(is_active=True, is_paused=False, next_run_at__lt=now - LATE)
    signs = {
        "no_leader": leader_now(now) is None,
        "due_jobs_late": Job.objects.due().filter(run_at__lt=now - LATE)[:1].exists(),
        "schedules_late": late_schedules[:1].exists(),
        "leases_lapsed": Job.objects.in_flight().filter(lease_expires_at__lt=now - swept)[:1].exists(),
        "queue_without_worker": any(not queue.workers for queue in waiting),
    }
    reasons = tuple(reason for reason, is_so in signs.items() if is_so)
    if _is_stalled(waiting):
        return Condition("stalled", ("nothing_is_claimed", *reasons))
    return Condition("degraded" if reasons else "ready", reasons)


def _is_stalled(waiting: list[Waiting]) -> bool:
    """Does work wait for a worker while none is at work?"""
    if all(queue.has_circuit for queue in waiting):
        return False
    recent = JobExecution.objects.filter(id__gte=first_id_at(database_now() - STALLED_AFTER))
    return not recent[:1].exists() and not Job.objects.in_flight()[:1].exists()
