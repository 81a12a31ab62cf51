"""Workers over HTTP: who they are, that they live, and that they shall take nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from jobs.models import Worker, WorkerHeartbeat
from orgs.access import Actor, get_visible
from orgs.audit import deed
from orgs.models import Project, Role
from queues.models import Queue
from scheduler_project.lib.errors import Conflict

MAX_PATH_CHARS = 300
_ALIVE = Q(status__in=[Worker.Status.ACTIVE, Worker.Status.DRAINING])


@dataclass(frozen=True, slots=True)
class Info:
    """What a worker tells of itself."""

    name: str = "remote"
    pid: int = 0
    version: str = ""
    slots: int = 1


@dataclass(frozen=True, slots=True)
class Vitals:
    """How a worker is."""

    active: int
    cpu_percent: float
    memory_mb: float


def worker_row_id(project_id: UUID, worker_id: UUID) -> UUID:
    """The id of the worker's row. Made from both, so that nobody can pose as a worker of another project."""
    return uuid5(project_id, worker_id.hex)


def paths_of(project_id: UUID, queues: Sequence[Queue] | None) -> list[str]:
    """The queues a worker serves, as people write them; all of the project is one path that ends in a star."""
    slug, organization = Project.objects.values_list("slug", "organization__slug").get(pk=project_id)
    names = ["*"] if queues is None else [queue.name for queue in queues]
    return [f"{organization}/{slug}/{name}"[:MAX_PATH_CHARS] for name in names]


def meet(project_id: UUID, worker_id: UUID, info: Info, queue_paths: Sequence[str]) -> UUID:
    """Write down that this worker is here and what it serves; its row's id. One statement, known or new."""
    row = Worker(
        id=worker_row_id(project_id, worker_id),
        project_id=project_id,
        hostname=info.name,
        pid=info.pid,
        version=info.version,
        subscribed_queues=list(queue_paths),
        max_concurrency=info.slots,
        status=Worker.Status.ACTIVE,
        last_seen_at=Now(),
    )
    told = ["hostname", "pid", "version", "subscribed_queues", "max_concurrency", "status", "last_seen_at"]
    Worker.objects.bulk_create([row], update_conflicts=True, unique_fields=["id"], update_fields=told)
    return row.pk


def note_alive(row_id: UUID) -> bool:
    """The worker waits for an answer of ours, so it lives; True if it shall drain."""
    Worker.objects.filter(pk=row_id).update(last_seen_at=Now())
    return must_drain(row_id)


def must_drain(row_id: UUID) -> bool:
    """Was this worker asked to take nothing new?"""
    return Worker.objects.filter(pk=row_id, drain_requested_at__isnull=False).exists()


def beat(row_id: UUID, status: Worker.Status, vitals: Vitals) -> bool:
    """Write down that the worker lives and how it is; True if it shall drain. Nothing for one that never claimed."""
    if not Worker.objects.filter(pk=row_id).update(last_seen_at=Now(), status=status):
        return False
    WorkerHeartbeat.objects.create(
        worker_id=row_id,
        active_job_count=vitals.active,
        cpu_percent=vitals.cpu_percent,
        memory_mb=vitals.memory_mb,
        metadata={},
    )
    return must_drain(row_id)


def request_drain(actor: Actor, row_id: UUID) -> None:
    """Ask a worker over HTTP to finish what it has and take nothing new; it hears so with its next heartbeat.

    Raises:
        NotFound, Forbidden: as for everything in a project; our own workers are asked by SIGTERM instead.
        Conflict: it is gone.
    """
    workers: QuerySet[Any] = Worker.objects.filter(pk=row_id)
    worker: Worker = get_visible(workers, actor, "project", needs=Role.ADMIN, what="worker")
    with deed(actor, "worker.drain", worker):
        if not Worker.objects.filter(_ALIVE, pk=worker.pk).update(drain_requested_at=Now()):
            raise Conflict("The worker is gone already.")
        worker.refresh_from_db()
