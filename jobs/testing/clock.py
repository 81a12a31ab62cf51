"""Time in tests. The database's clock decides what is due, and it can not be set; so the rows are moved instead."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import DateTimeField, F, Model

from dlq.models import DeadLetter
from jobs.lifecycle.promote import promote_due
from jobs.lifecycle.reap import reap_expired
from jobs.models import (
    CircuitBreaker,
    Job,
    JobBatch,
    JobExecution,
    Operation,
    ScheduledJob,
    ScheduleFire,
    Worker,
    WorkerClaim,
)
from jobs.services.batches import fold_batches
from jobs.services.firing import fire_due
from orgs.models import TokenBucket

#: Every moment in these tables moves: all that waits for a time, lasts until one, or is told by one.
MOVED: tuple[type[Model], ...] = (
    Job, JobExecution, JobBatch, ScheduledJob, ScheduleFire, CircuitBreaker, Worker, WorkerClaim, Operation, DeadLetter,
    TokenBucket,
)  # fmt: skip
MOST = 1_000


def time_passes(seconds: float) -> None:
    """Let so much time pass as if no worker and no scheduler had been there meanwhile; then the scheduler comes.

    Everything in the test's database becomes older by ``seconds``: leases run out, retries and jobs become due,
    schedules too (their due times move with them, off the full minute). Then it does once what the scheduler does:
    lapsed leases are settled as lost, due schedules fire by their misfire policy, due jobs are queued, batches are
    looked at. Jobs are not run: call ``drain``.
    """
    if seconds <= 0:
        raise ValueError("time passes forwards only")
    ago = timedelta(seconds=seconds)
    with transaction.atomic():
        for model in MOVED:
            names = [field.name for field in model._meta.concrete_fields if isinstance(field, DateTimeField)]
            # The latest first would matter only for unique moments: one statement moves them all, checked at its end.
            model._default_manager.update(**{name: F(name) - ago for name in names})
    reap_expired(limit=MOST)
    fire_due()
    promote_due(limit=MOST)
    fold_batches()
