"""Why does a job not run? Answered from the very conditions that promotion and claim go by."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Q

from jobs.decisions import DEADLINE_PASSED, START_DEADLINE_PASSED
from jobs.models import Job, JobDependency, LeaderTerm, Worker
from jobs.selectors.gates import gates_of
from jobs.selectors.reason import Reason
from jobs.states import IN_FLIGHT, TERMINAL, JobStatus
from queues.models import Queue
from scheduler_project.lib.sql import database_now

#: Jobs ahead are counted so far.
MOST_AHEAD = 1_000
MOST_SHOWN = 20
#: A leader renews its term every few seconds; one silent for longer leads no more.
LEADER_SILENT_S = 30.0


def explain(job: Job) -> list[Reason]:
    """What keeps a job from running now; the one reason is ``ended``, ``in_flight`` or ``next`` if nothing does."""
    if job.status in TERMINAL:
        more = {"completed_at": job.completed_at}
        return [Reason("ended", f"It has ended: {job.status}.{_why(job)}", more)]
    if job.status in IN_FLIGHT:
        return [_in_flight(job)]
    is_read = Job.queue.is_cached(job)
    queue = job.queue if is_read else Queue.objects.select_related("project__organization").get(pk=job.queue_id)
    now = database_now()
    own = _scheduled(job, now) if job.status == JobStatus.SCHEDULED else []
    reasons = [*_too_late(job, now), *own, *_of_queue(queue)]
    if job.status == JobStatus.QUEUED:
        reasons += gates_of(job, queue)
        reasons += _in_line(job)
    return reasons or [Reason("next", "Nothing: it is claimed as soon as a worker looks.")]


def _why(job: Job) -> str:
    """Of a job that nobody touched: which deadline ended it."""
    is_late = job.status == JobStatus.CANCELLED and job.error_message in (START_DEADLINE_PASSED, DEADLINE_PASSED)
    return f" Its {job.error_message}." if is_late else ""


def _too_late(job: Job, now: datetime) -> Iterator[Reason]:
    if job.start_deadline is not None and job.attempt_count == 0 and job.start_deadline <= now:
        text = "Its start deadline has passed; the scheduler cancels it in a moment."
        yield Reason("start_deadline_passed", text, {"start_deadline": job.start_deadline})
    if job.deadline is not None and job.deadline <= now:
        text = "Its deadline has passed; the scheduler cancels it in a moment."
        yield Reason("deadline_passed", text, {"deadline": job.deadline})


def _in_flight(job: Job) -> Reason:
    more: dict[str, Any] = {
        "worker_id": job.locked_by,
        "since": job.locked_at,
        "lease_expires_at": job.lease_expires_at,
        "cancel_requested_at": job.cancel_requested_at,
    }
    if job.status == JobStatus.CLAIMED:
        return Reason("in_flight", "A worker has claimed it and is about to begin.", more)
    asked = " It was asked to stop." if job.cancel_requested_at else ""
    return Reason("in_flight", f"It runs.{asked}", more)


def _scheduled(job: Job, now: datetime) -> list[Reason]:
    if job.is_blocked:
        parents = _blocking_parents(job)
        text = f"It waits for {len(parents)} other job{'s' if len(parents) > 1 else ''}."
        return [Reason("blocked", text, {"parents": parents})]
    if job.run_at > now:
        wait_s = (job.run_at - now).total_seconds()
        more = {"run_at": job.run_at, "in_s": round(wait_s, 1)}
        if job.attempt_count:
            text = f"Attempt {job.attempt_count} did not succeed; the next is due in {wait_s:.0f} s."
            return [Reason("waiting_to_retry", text, {**more, "attempts_used": job.attempt_count})]
        return [Reason("not_due", f"It is due in {wait_s:.0f} s.", more)]
    if not _has_leader(now):
        return [Reason("no_scheduler", "It is due, but no scheduler leads that would queue it.")]
    return [Reason("promotion_pending", "It is due; the scheduler queues it in a moment.")]


def _blocking_parents(job: Job) -> list[dict[str, Any]]:
    edges = JobDependency.objects.filter(job=job).exclude(depends_on_job__status=JobStatus.COMPLETED)
    edges = edges.exclude(on_failure="run", depends_on_job__status__in=sorted(TERMINAL)).order_by("depends_on_job_id")
    rows = edges.values_list("depends_on_job_id", "depends_on_job__status", "on_failure")[:MOST_SHOWN]
    return [{"job_id": id_, "status": status, "on_failure": on_failure} for id_, status, on_failure in rows]


def _has_leader(now: datetime) -> bool:
    term = LeaderTerm.objects.order_by("-id").first()
    return term is not None and term.ended_at is None and (now - term.renewed_at).total_seconds() < LEADER_SILENT_S


def _of_queue(queue: Queue) -> Iterator[Reason]:
    if queue.deleted_at is not None:
        yield Reason("queue_deleted", f"The queue {queue.name} was deleted.", {"deleted_at": queue.deleted_at})
    if queue.is_paused:
        why = f": {queue.paused_reason}" if queue.paused_reason else "."
        yield Reason("queue_paused", f"The queue {queue.name} is paused{why}", {"paused_reason": queue.paused_reason})
    if not _has_worker(queue):
        yield Reason("no_worker", "No live worker serves this queue.")
    if queue.max_concurrency is not None:
        yield from _limit(queue, queue.max_concurrency)


def _has_worker(queue: Queue) -> bool:
    path = f"{queue.project.organization.slug}/{queue.project.slug}/{queue.name}"
    alive = Worker.objects.filter(status=Worker.Status.ACTIVE).filter(Q(project=None) | Q(project=queue.project_id))
    return alive.filter(Q(subscribed_queues=[]) | Q(subscribed_queues__contains=[path])).exists()


def _limit(queue: Queue, limit: int) -> Iterator[Reason]:
    busy = Job.objects.in_flight().filter(queue=queue)
    count = busy.count()  # never more than the limit was when they were claimed
    if count < limit:
        return
    rows = busy.order_by("locked_at").values_list("id", "job_type", "locked_by", "locked_at")[:MOST_SHOWN]
    workers = dict(Worker.objects.filter(pk__in={row[2] for row in rows}).values_list("id", "hostname"))
    holders = [
        {
            "job_id": id_,
            "job_type": job_type,
            "worker_id": by,
            "hostname": workers.get(by) if by else None,
            "since": since,
        }
        for id_, job_type, by, since in rows
    ]
    text = f"All {limit} slots of the queue {queue.name} are taken."
    yield Reason("at_limit", text, {"max_concurrency": limit, "in_flight": count, "holders": holders})


def _in_line(job: Job) -> list[Reason]:
    ahead, is_capped = Job.objects.ahead_of(
        queue_id=job.queue_id, priority=job.priority, run_at=job.run_at, id_=job.pk, cap=MOST_AHEAD
    )
    if not ahead and not is_capped:
        return []
    more = {"jobs_ahead": ahead, "is_capped": is_capped}
    return [Reason("in_line", f"{ahead}{' or more' if is_capped else ''} jobs of its queue come first.", more)]
