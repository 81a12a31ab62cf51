"""submit a whole graph: jobs that wait for each other, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from django.db import transaction

from jobs.dag import find_cycle
from jobs.lifecycle.placing import Placed, Submitted, add_edges, answers_of, insert, refuse_deleted
from jobs.new_job import NewJob, Parent, checked, sealed
from queues.models import Queue
from scheduler_project.lib.errors import FieldError, ValidationFailed
from scheduler_project.lib.ids import uuid7

MAX_NODES = 10_000


class After(NamedTuple):
    """Wait for the node of this name in the same graph."""

    ref: str
    on_failure: Literal["cancel", "run", "wait"] = "cancel"


@dataclass(frozen=True, slots=True)
class Node:
    """A job of a graph, its name in it and the names of those it waits for."""

    ref: str
    queue: Queue
    job: NewJob
    after: Sequence[After] = ()


def submit_graph(nodes: Sequence[Node]) -> dict[str, Submitted]:
    """Submit all jobs and who waits for whom, or nothing; the answers by name.

    All queues must be of one project. Jobs of a graph take no idempotency key: half of a graph met again would be
    neither the old graph nor a new one.

    Raises:
        ValidationFailed: naming ``jobs[i].…``; a cycle is named with all its members.
        Conflict: a queue was deleted.
    """
    _check(nodes)
    ids = {node.ref: uuid7() for node in nodes}
    waited_for = {after.ref for node in nodes for after in node.after}
    jobs = [node.job for node in nodes]
    payloads = sealed(jobs, checked(jobs))
    placed = [
        Placed(ids[node.ref], node.queue, node.job, text, bool(node.after), node.ref in waited_for)
        for node, text in zip(nodes, payloads, strict=True)
    ]
    with transaction.atomic():
        inserted = insert(placed)
        edges = [(ids[n.ref], Parent(ids[a.ref], a.on_failure)) for n in nodes for a in n.after]
        add_edges(nodes[0].queue.project_id, edges)
        return dict(zip(ids, answers_of(placed, inserted), strict=True))


def _check(nodes: Sequence[Node]) -> None:
    if not 1 <= len(nodes) <= MAX_NODES:
        raise ValidationFailed.of("jobs", f"a graph has 1 to {MAX_NODES:,} jobs, not {len(nodes):,}")
    for node in nodes:
        refuse_deleted(node.queue)
    errors = _complaints(nodes)
    if errors:
        raise ValidationFailed("; ".join(f"{e.field}: {e.message}" for e in errors[:3]), errors)
    cycle = find_cycle({node.ref: [after.ref for after in node.after] for node in nodes})
    if cycle:
        index = next(i for i, node in enumerate(nodes) if node.ref == cycle[0])
        raise ValidationFailed.of(f"jobs[{index}].depends_on", f"the jobs wait for each other: {' → '.join(cycle)}")


def _complaints(nodes: Sequence[Node]) -> list[FieldError]:
    errors: list[FieldError] = []
    known: Mapping[str, int] = {node.ref: i for i, node in enumerate(nodes)}
    for i, node in enumerate(nodes):
        if known[node.ref] != i:
            errors.append(FieldError(f"jobs[{i}].ref", f"{node.ref!r} names two jobs"))
        if node.queue.project_id != nodes[0].queue.project_id:
            errors.append(FieldError(f"jobs[{i}].queue", "all jobs of a graph belong to one project"))
        if node.job.depends_on:
            errors.append(FieldError(f"jobs[{i}].depends_on", "jobs of a graph wait for jobs of the same graph"))
        if node.job.idempotency_key is not None:
            errors.append(FieldError(f"jobs[{i}].idempotency_key", "jobs of a graph take none"))
        for k, after in enumerate(node.after):
            if after.ref not in known:
                errors.append(FieldError(f"jobs[{i}].depends_on[{k}]", f"{after.ref!r} is no job of this graph"))
    return errors
