"""What a queued job's gates say: its circuit breaker, its concurrency key, its queue's rate."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Q

from jobs.models import CircuitBreaker, Job
from jobs.selectors.reason import Reason
from orgs.models import TokenBucket
from queues.models import Queue
from scheduler_project.lib.sql import database_now

MOST_SHOWN = 20


def gates_of(job: Job, queue: Queue) -> Iterator[Reason]:
    """The gates that are shut for this queued job, by the conditions of claim.sql and claim_gated.sql."""
    if job.circuit is not None:
        yield from _circuit(job)
    if job.concurrency_key is not None:
        yield from _key(job, queue)
    if queue.rate_limit is not None and queue.rate_period_secs is not None:
        yield from _rate(queue, queue.rate_limit, queue.rate_period_secs)


def _circuit(job: Job) -> Iterator[Reason]:
    not_trusted = ~Q(state=CircuitBreaker.State.CLOSED) | Q(allowance__isnull=False)
    breaker = CircuitBreaker.objects.filter(not_trusted, project_id=job.project_id, name=job.circuit).first()
    if breaker is None or job.pk in breaker.let_through:
        return
    more = {"circuit": breaker.name, "state": breaker.state, "opened_at": breaker.opened_at}
    if breaker.state == CircuitBreaker.State.OPEN and breaker.opened_at is not None:
        probe_at = breaker.opened_at + timedelta(seconds=settings.BREAKER_COOL_DOWN_SECS)
        in_s = max(0.0, (probe_at - database_now()).total_seconds())
        text = f"The circuit {breaker.name} is open since too many calls failed; one job probes it in {in_s:.0f} s."
        yield Reason("circuit_open", text, {**more, "probe_at": probe_at})
    elif breaker.state == CircuitBreaker.State.HALF_OPEN:
        text = f"The circuit {breaker.name} is being probed by one job; this one waits for the outcome."
        yield Reason("circuit_half_open", text, {**more, "probe": breaker.let_through})
    else:
        text = f"The circuit {breaker.name} has just closed and lets {breaker.allowance} jobs through at a time."
        yield Reason("circuit_closing", text, {**more, "allowance": breaker.allowance})


def _key(job: Job, queue: Queue) -> Iterator[Reason]:
    holders = Job.objects.in_flight().filter(queue_id=job.queue_id, concurrency_key=job.concurrency_key)
    rows = list(holders.order_by("locked_at").values_list("id", "job_type", "locked_by", "locked_at")[:MOST_SHOWN])
    limit = queue.max_concurrency_per_key
    if len(rows) < min(limit, MOST_SHOWN) or (limit > MOST_SHOWN and holders.count() < limit):
        return
    names = ("job_id", "job_type", "worker_id", "since")
    shown = [dict(zip(names, row, strict=True)) for row in rows]
    text = f"{limit} job{'s' if limit > 1 else ''} with the concurrency key {job.concurrency_key!r} may run at once."
    yield Reason("key_at_limit", text, {"max_concurrency_per_key": limit, "holders": shown})


def _rate(queue: Queue, limit: int, period_s: int) -> Iterator[Reason]:
    bucket = TokenBucket.objects.filter(key=f"queue:{queue.pk}").first()
    if bucket is None:
        return
    per_s = limit / period_s
    tokens = min(limit, bucket.tokens + per_s * max(0.0, (database_now() - bucket.refilled_at).total_seconds()))
    if tokens >= 1:
        return
    wait_s = (1 - tokens) / per_s
    text = f"The queue {queue.name} starts {limit} jobs in {period_s} s at most; the next may start in {wait_s:.1f} s."
    yield Reason("rate_limited", text, {"rate_limit": limit, "rate_period_secs": period_s, "in_s": round(wait_s, 1)})
