"""Many jobs at once: all or nothing, or each on its own; inserted in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from jobs.lifecycle.graph import After, Node, submit_graph
from jobs.lifecycle.submit import Submitted, submit_to_queues
from jobs.models import Job
from jobs.new_job import NewJob, Parent, checked, has_secrets
from jobs.services.batches import add_jobs
from queues.models import Queue, RetryPolicy
from scheduler_project.lib import json_gate
from scheduler_project.lib.constraints import refusals
from scheduler_project.lib.errors import Conflict, DomainError, FieldError, Forbidden, NotFound, ValidationFailed
from scheduler_project.lib.sealed_json import is_same

_KEY = "idempotency_key"
_FOREIGN_POLICY = ValidationFailed.of("retry_policy_id", "is no retry policy of this project")


class Waits(NamedTuple):
    """A job that another waits for: of the same request if it has a job of that name, else one that exists."""

    name: str | None
    parent: Parent | None
    on_failure: str


@dataclass(frozen=True, slots=True)
class Item:
    """A job of the request, and what it waits for."""

    queue: Queue
    job: NewJob
    ref: str | None = None
    waits: Sequence[Waits] = ()


Outcome = Submitted | DomainError


def submit_bulk(items: Sequence[Item | DomainError], *, is_atomic: bool) -> list[Outcome]:
    """Submit the items; what became of each, in order. Those that are errors already stay what they are.

    Args:
        is_atomic: nothing is submitted unless all are; needed if jobs wait for others of the request.

    Raises:
        DomainError: with ``is_atomic`` the errors of all items, under their places: ``jobs[3].run_at``.
    """
    outcomes: list[Item | Outcome] = list(items)
    refs = {item.ref for item in items if isinstance(item, Item) and item.ref is not None}
    _judge_each(outcomes, refs)
    if is_atomic or refs:
        _refuse_any(outcomes)
    good = {index: item for index, item in enumerate(outcomes) if isinstance(item, Item)}
    if refs:
        if not is_atomic:
            raise ValidationFailed.of("atomic", "must be true if jobs of the request wait for each other")
        return list(_submit_graph(list(good.values())))
    with transaction.atomic():
        outcomes = [*outcomes]
        for index, outcome in zip(good, _submit_each(list(good.values())), strict=True):
            outcomes[index] = outcome
        if is_atomic:
            _refuse_any(outcomes)
    return [outcome for outcome in outcomes if not isinstance(outcome, Item)]


def add_to_batch(batch_id: UUID, project_id: UUID, items: Sequence[Item | DomainError]) -> list[Outcome]:
    """Submit the items as jobs of a batch, all or none; what became of each, in order.

    Raises:
        DomainError: the errors of all items under their places; Conflict if the batch takes no more.
    """
    outcomes: list[Item | Outcome] = [_batchable(item, project_id) for item in items]
    _judge_each(outcomes, set())
    _refuse_any(outcomes)
    of_queue: dict[UUID, list[tuple[int, Item]]] = {}
    for index, item in enumerate(outcomes):
        if isinstance(item, Item):
            of_queue.setdefault(item.queue.pk, []).append((index, item))
    with transaction.atomic(), refusals({"jobs_retry_policy_in_project": _FOREIGN_POLICY}):
        for numbered in of_queue.values():
            added = add_jobs(batch_id, numbered[0][1].queue, [_with_parents(item) for _, item in numbered])
            for (index, _), outcome in zip(numbered, added, strict=True):
                outcomes[index] = outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, Item)]


def _batchable(item: Item | DomainError, project_id: UUID) -> Item | DomainError:
    if isinstance(item, DomainError):
        return item
    if item.queue.project_id != project_id:
        return ValidationFailed.of("queue_id", "must be a queue of the batch's project")
    if item.ref is not None:
        return ValidationFailed.of("ref", "jobs of a batch have no names; use jobs/bulk for a graph")
    if item.job.idempotency_key is not None:
        return ValidationFailed.of(_KEY, "jobs of a batch take none")
    return item


def _with_parents(item: Item) -> NewJob:
    return replace(item.job, depends_on=[waits.parent for waits in item.waits if waits.parent])


def _judge_each(outcomes: list[Item | Outcome], refs: set[str]) -> None:
    """Replace the items that can not be submitted by the reason."""
    items = [item for item in outcomes if isinstance(item, Item)]
    policies = _policies({item.job.retry_policy_id for item in items if item.job.retry_policy_id})
    parents = _parents({w.parent.job_id for item in items for w in item.waits if w.parent and w.name not in refs})
    project_id = items[0].queue.project_id if items else None
    for index, item in enumerate(outcomes):
        if isinstance(item, Item):
            try:
                _judge(item, project_id, policies, parents, refs)
            except DomainError as error:
                outcomes[index] = error


def _judge(
    item: Item,
    project_id: UUID | None,
    policies: Mapping[UUID, UUID],
    parents: Mapping[UUID, UUID],
    refs: set[str],
) -> None:
    if item.queue.project_id != project_id:
        raise ValidationFailed.of("queue_id", "all jobs of a request must be of one project")
    checked([item.job])
    policy_id = item.job.retry_policy_id
    if policy_id is not None and policies.get(policy_id) != project_id:
        raise _FOREIGN_POLICY
    for place, waits in enumerate(item.waits):
        if waits.name in refs and waits.name is not None:
            continue
        if waits.parent is None:
            raise ValidationFailed.of(f"depends_on[{place}]", f"{waits.name!r} names no job of this request")
        if refs:
            raise ValidationFailed.of(
                f"depends_on[{place}]", "jobs of a request with names can wait only for jobs of the same request"
            )
        if parents.get(waits.parent.job_id) != project_id:
            raise ValidationFailed.of(f"depends_on[{place}]", "there is no such job in this project")


def _submit_graph(items: Sequence[Item]) -> list[Submitted]:
    nodes = [
        Node(
            item.ref or f"#{index}",
            item.queue,
            item.job,
            [After(w.name or "", w.on_failure) for w in item.waits],  # type: ignore[arg-type] # checked by the door
        )
        for index, item in enumerate(items)
    ]
    return list(submit_graph(nodes).values())


def _submit_each(items: Sequence[Item]) -> list[Outcome]:
    if not items:
        return []
    jobs = [(item.queue, _with_parents(item)) for item in items]
    with refusals({"jobs_retry_policy_in_project": _FOREIGN_POLICY}):
        answers = submit_to_queues(jobs)
    old = [(answer, item.job) for answer, item in zip(answers, items, strict=True) if not answer.is_new]
    same = _same_work(old)
    return [answer if answer.is_new or answer.id in same else _other_work() for answer in answers]


def _same_work(old: Sequence[tuple[Submitted, NewJob]]) -> set[UUID]:
    if not old:
        return set()
    same = set(
        Job.objects.same_work(
            ids=[str(answer.id) for answer, _ in old],
            job_types=[job.job_type for _, job in old],
            payloads=[json_gate.encode(job.payload) for _, job in old],
        )
    )
    # A sealed secret differs from itself each time: those are compared by their keyed hashes.
    secret = {answer.id: job for answer, job in old if answer.id not in same and has_secrets(job.job_type)}
    rows = Job.objects.filter(pk__in=secret).values_list("id", "job_type", "payload") if secret else ()
    return same | {
        id_ for id_, job_type, payload in rows
        if job_type == secret[id_].job_type and is_same(payload, secret[id_].payload)
    }  # fmt: skip


def _other_work() -> Conflict:
    message = "stands for a job of another type or payload"
    return Conflict(f"{_KEY}: {message}", [FieldError(_KEY, message)])


def _policies(ids: Iterable[UUID]) -> dict[UUID, UUID]:
    wanted = list(ids)
    return dict(RetryPolicy.objects.filter(pk__in=wanted).values_list("pk", "project_id")) if wanted else {}


def _parents(ids: Iterable[UUID]) -> dict[UUID, UUID]:
    wanted = list(ids)
    return dict(Job.objects.filter(pk__in=wanted).values_list("pk", "project_id")) if wanted else {}


def _refuse_any(outcomes: Sequence[Item | Outcome]) -> None:
    """Raise one error that tells all of them; of the kind they share, else as bad input."""
    errors = [(index, outcome) for index, outcome in enumerate(outcomes) if isinstance(outcome, DomainError)]
    if not errors:
        return
    details = [
        FieldError(f"jobs[{index}].{detail.field}", detail.message)
        for index, error in errors
        for detail in error.details or [FieldError("queue_id", error.message)]
    ]
    message = "; ".join(f"{d.field}: {d.message}" for d in details[:3])
    for kind in (NotFound, Forbidden, Conflict):
        if all(isinstance(error, kind) for _, error in errors):
            raise kind(message, details)
    raise ValidationFailed(message, details)
