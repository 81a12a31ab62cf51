"""Handing jobs to a worker over HTTP. A claim has an id of the worker's choice: asked again, it is answered again."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from jobs.lease import Lease
from jobs.lifecycle.claim import Claim, KnownTypes, Want, claim_jobs, ready_queues
from jobs.lifecycle.claim_gated import claim_gated
from jobs.models import Job, WorkerClaim
from jobs.services.remote.secrets import in_the_clear
from queues.models import Queue
from queues.selectors import queues_at
from scheduler_project.lib.errors import Conflict, FieldError, NotFound, ValidationFailed
from scheduler_project.lib.sql import database_now

#: Queues tried in one look before it gives up and comes again.
QUEUES_AT_ONCE = 4
#: How long beyond its longest lease the id of a claim is kept from claiming anew.
REMEMBER_S = 600


@dataclass(frozen=True, slots=True)
class Wish:
    """What a worker asks for; ``queue_ids`` in the order in which they are to be served, None for all, any order."""

    project_id: UUID
    worker_row_id: UUID
    claim_id: UUID | None
    queue_ids: tuple[str, ...] | None
    types: KnownTypes
    max_jobs: int


@dataclass(frozen=True, slots=True)
class Handed:
    """A job in a worker's hands."""

    id: UUID
    lease_token: UUID
    job_type: str
    queue_id: UUID
    queue: str
    attempt: int
    fencing_number: int
    priority: int
    trace_id: str
    created_at: Any
    lease_expires_in_ms: int
    lease_s: int
    payload: Any


def find_queues(project_id: UUID, refs: Sequence[str]) -> list[Queue]:
    """The queues of a project by id, name or path, each once and in their order.

    Raises:
        NotFound: one of them is no queue of this project.
        ValidationFailed: one of them can not be a queue's name.
    """
    found: dict[UUID, Queue] = {}
    for index, ref in enumerate(refs):
        queue = _find_queue(project_id, ref)
        if queue is None and not ref.isprintable():
            raise ValidationFailed.of(f"queues[{index}]", "is no id, name or path of a queue")
        if queue is None:
            raise NotFound("There is no such queue.")
        found.setdefault(queue.pk, queue)
    return list(found.values())


def _find_queue(project_id: UUID, ref: str) -> Queue | None:
    try:
        by_id = Queue.objects.filter(pk=UUID(ref), deleted_at=None)
    except ValueError:
        queues = queues_at(ref) if ref.isprintable() else None
        return None if queues is None else queues.filter(project_id=project_id).first()
    return by_id.filter(project_id=project_id).first()


def ask_again(wish: Wish) -> list[Handed] | None:
    """What this claim was answered before, as far as the leases still hold; None if it is new."""
    if wish.claim_id is None:
        return None
    claim = WorkerClaim.objects.filter(project_id=wish.project_id, claim_id=wish.claim_id).first()
    if claim is None:
        return None
    if claim.worker_id != wish.worker_row_id:
        raise Conflict("claim_id: stands for a claim of another worker", [FieldError("claim_id", "is taken")])
    return _handed(wish.project_id, claim.job_ids, claim.tokens)


def try_claim(wish: Wish) -> list[Handed]:
    """One look: jobs of the first queues that have any. Two requests with one claim id get the same jobs."""
    ready = ready_queues(_served(wish), wish.types)
    queues = _in_order(wish, ready)
    if not queues:
        return []
    try:
        with transaction.atomic():
            leases = _claim(wish, queues, gated={str(row[0]) for row in ready if row[3]})
            ids, tokens = [UUID(lease.job_id) for lease in leases], [UUID(lease.token) for lease in leases]
            if leases and wish.claim_id is not None:
                keep_s = max(lease.lease_s for lease in leases) + REMEMBER_S
                _remember(wish, wish.claim_id, zip(ids, tokens, strict=True), keep_s)
    except IntegrityError:
        return ask_again(wish) or []  # the same claim was asked twice and the other request was faster
    return _handed(wish.project_id, ids, tokens)


def forget_claims(limit: int) -> int:
    """Delete up to ``limit`` claims that nobody can ask for any more; how many."""
    old = WorkerClaim.objects.filter(expires_at__lt=Now()).values_list("project_id", "claim_id")[:limit]
    pairs = list(old)
    return WorkerClaim.objects.filter(pk__in=pairs).delete()[0] if pairs else 0


def _served(wish: Wish) -> list[str]:
    if wish.queue_ids is not None:
        return list(wish.queue_ids)
    own = Queue.objects.filter(project_id=wish.project_id, deleted_at=None)
    return [str(queue_id) for queue_id in own.values_list("pk", flat=True)]


def _in_order(wish: Wish, ready: Sequence[Sequence[Any]]) -> list[str]:
    """By the worker's own order, else the most urgent first and equals by chance, so that none starves."""
    if wish.queue_ids is not None:
        names = {str(row[0]) for row in ready}
        return [queue_id for queue_id in wish.queue_ids if queue_id in names][:QUEUES_AT_ONCE]
    mixed = sorted(ready, key=lambda row: (-row[2], random.random()))  # noqa: S311 - spreads, hides nothing
    return [str(row[0]) for row in mixed][:QUEUES_AT_ONCE]


def _claim(wish: Wish, queue_ids: Sequence[str], gated: Collection[str]) -> list[Lease]:
    leases: list[Lease] = []
    for queue_id in queue_ids:
        left = wish.max_jobs - len(leases)
        if left > 0:
            want = Want(queue_id, left)
            claim = Claim(str(wish.worker_row_id), [want], wish.types, starts=left)
            leases += claim_gated(claim, want).leases if queue_id in gated else claim_jobs(claim)
    return leases


def _remember(wish: Wish, claim_id: UUID, handed: Iterable[tuple[UUID, UUID]], keep_s: int) -> None:
    job_ids, tokens = zip(*handed, strict=True)
    WorkerClaim.objects.create(
        project_id=wish.project_id,
        claim_id=claim_id,
        worker_id=wish.worker_row_id,
        job_ids=list(job_ids),
        tokens=list(tokens),
        expires_at=database_now() + timedelta(seconds=keep_s),
    )


def _handed(project_id: UUID, job_ids: Sequence[UUID], tokens: Sequence[UUID]) -> list[Handed]:
    """The jobs whose lease is still one of these, in the order in which they were claimed."""
    jobs = Job.objects.filter(project_id=project_id, id__in=job_ids, lease_token__in=tokens)
    left = ExpressionWrapper(F("lease_expires_at") - Now(), output_field=DurationField())
    rows = {job.pk: job for job in jobs.select_related("queue").annotate(lease_left=left)}
    return [_shown(rows[job_id]) for job_id in job_ids if job_id in rows]


def _shown(job: Any) -> Handed:
    return Handed(
        id=job.pk,
        lease_token=job.lease_token,
        job_type=job.job_type,
        queue_id=job.queue_id,
        queue=job.queue.name,
        attempt=job.attempt_count + 1,
        fencing_number=job.fencing_number,
        priority=job.priority,
        trace_id=job.trace_id,
        created_at=job.created_at,
        lease_expires_in_ms=max(0, round(job.lease_left.total_seconds() * 1000)),
        lease_s=job.queue.visibility_timeout_secs,
        payload=in_the_clear(job.pk, job.payload),
    )
