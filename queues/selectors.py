"""What an actor sees of queues and retry policies."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from functools import reduce
from operator import or_
from typing import cast
from uuid import UUID

from django.db.models import Q, QuerySet

from orgs.access import Actor, Machine, get_visible, require, visible
from orgs.models import Role
from queues import sql
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.errors import DomainError, Forbidden, NotFound, ValidationFailed
from scheduler_project.lib.sql import Row, run

MOST_NAMED = 1_000
PATH_FORM = "write organization/project/queue"
#: As queue_of_key.sql returns them.
_FOR_SUBMISSION = ("id", "project_id", "name", "has_keys", "deleted_at")


def list_queues(actor: Actor, project_id: UUID | None = None) -> QuerySet[Queue]:
    """The queues an actor sees, newest first, each with his role as ``actor_role``."""
    queues = visible(Queue.objects.filter(deleted_at=None), actor, "project").order_by("-id")
    return queues if project_id is None else queues.filter(project_id=project_id)


def queue_names(project_id: UUID) -> list[tuple[UUID, str]]:
    """The live queues of a project to choose from, by name: MOST_NAMED at most."""
    queues = Queue.objects.filter(project=project_id, deleted_at=None)
    return list(queues.order_by("name").values_list("id", "name")[:MOST_NAMED])


def get_queue(actor: Actor, queue_id: UUID, *, needs: Role) -> Queue:
    """One queue. Raises NotFound or Forbidden."""
    return get_visible(Queue.objects.filter(pk=queue_id, deleted_at=None), actor, "project", needs=needs, what="queue")


def get_queue_by_path(actor: Actor, path: str, *, needs: Role) -> Queue:
    """One queue by its written form, see ``find_queue_by_path``. The holder of a key may leave out its project.

    Raises:
        ValidationFailed: the form is not complete enough for this actor.
        NotFound, Forbidden: as ``get_queue``.
    """
    queues = queues_at(path)
    if path.count("/") < 2 and not isinstance(actor, Machine):
        raise ValidationFailed.of("queue", PATH_FORM)
    if queues is None:
        raise NotFound("There is no such queue.")
    return get_visible(queues, actor, "project", needs=needs, what="queue")


def queue_to_submit_to(actor: Actor, *, queue_id: UUID | None, path: str | None) -> Queue:
    """One queue by its id or its path, with what a submission has to know of it; the rest is read when asked for.

    A machine's way is one plain statement: it is the path that every submission of a program takes.

    Raises:
        ValidationFailed, NotFound, Forbidden: as ``get_queue_by_path``.
    """
    if not isinstance(actor, Machine):
        if path is not None:
            return get_queue_by_path(actor, path, needs=Role.MEMBER)
        return get_queue(actor, cast("UUID", queue_id), needs=Role.MEMBER)
    parts = _parts(path) if path is not None else []
    rows: list[Row] = []
    if parts is not None:
        name, project, organization = [*reversed(parts), None, None, None][:3]
        named = {"name": name, "project": project, "organization": organization}
        rows = run(sql.QUEUE_OF_KEY, {"project_id": actor.project_id, "queue_id": queue_id, **named})
    role = actor.role.value
    if not rows:
        raise NotFound("There is no such queue.")
    require(role, Role.MEMBER)
    return Queue.from_db(None, _FOR_SUBMISSION, rows[0])


def name_alone(path: str | None) -> str | None:
    """The queue's name, if a path is nothing more than that."""
    parts = _parts(path) if path is not None else None
    return parts[0] if parts is not None and len(parts) == 1 else None


def find_queues(
    actor: Actor, *, ids: Collection[UUID], paths: Collection[str], needs: Role
) -> dict[UUID | str, Queue | DomainError]:
    """Many queues by their ids and paths, in at most two statements; for each the queue or why it can not be had."""
    found: dict[UUID | str, Queue | DomainError] = {}
    missing = NotFound("There is no such queue.")
    if ids:
        queues = visible(Queue.objects.filter(pk__in=ids, deleted_at=None), actor, "project")
        seen = {queue.pk: _permitted(queue, needs) for queue in queues}
        found.update({id_: seen.get(id_, missing) for id_ in ids})
    usable: dict[str, Q] = {}
    for path in paths:
        condition = _condition(path)
        if path.count("/") < 2 and not isinstance(actor, Machine):
            found[path] = ValidationFailed.of("queue", PATH_FORM)
        elif condition is None:
            found[path] = missing
        else:
            usable[path] = condition
    if usable:
        rows = visible(Queue.objects.filter(reduce(or_, usable.values()), deleted_at=None), actor, "project")
        named = {_path(queue): _permitted(queue, needs) for queue in rows.select_related("project__organization")}
        for path in usable:
            ending = [full for full in named if f"/{full}".endswith("/" + unicodedata.normalize("NFC", path))]
            found[path] = named[ending[0]] if len(ending) == 1 else missing
    return found


def _permitted(queue: Queue, needs: Role) -> Queue | DomainError:
    try:
        require(getattr(queue, "actor_role"), needs)  # noqa: B009 - an annotation, which no type declares
    except Forbidden as error:
        return error
    return queue


def _path(queue: Queue) -> str:
    return f"{queue.project.organization.slug}/{queue.project.slug}/{queue.name}"


def find_queue_by_path(path: str) -> Queue | None:
    """The queue that ``organization/project/queue`` names, by the slugs and the queue's name; None if there is none."""
    queues = queues_at(path) if path.count("/") == 2 else None
    return None if queues is None else queues.first()


def queues_at(path: str) -> QuerySet[Queue] | None:
    """The queues that end in these parts: one for three parts, one in each project for fewer; None for a bad form."""
    condition = _condition(path)
    return None if condition is None else Queue.objects.filter(condition, deleted_at=None, project__deleted_at=None)


def _condition(path: str) -> Q | None:
    parts = _parts(path)
    if parts is None:
        return None
    names = ("name", "project__slug", "project__organization__slug")
    return Q(**dict(zip(names, reversed(parts), strict=False)))


def _parts(path: str) -> list[str] | None:
    parts = unicodedata.normalize("NFC", path).split("/")
    return parts if 1 <= len(parts) <= 3 and all(parts) else None


def list_retry_policies(actor: Actor, project_id: UUID | None = None) -> QuerySet[RetryPolicy]:
    """The policies an actor sees, newest first, each with his role as ``actor_role``."""
    policies = visible(RetryPolicy.objects.all(), actor, "project").order_by("-id")
    return policies if project_id is None else policies.filter(project_id=project_id)


def get_retry_policy(actor: Actor, policy_id: UUID, *, needs: Role, is_locked: bool = False) -> RetryPolicy:
    """One policy, its row locked until commit if asked for. Raises NotFound or Forbidden."""
    policies = RetryPolicy.objects.filter(pk=policy_id)
    if is_locked:
        policies = policies.select_for_update(no_key=True, of=("self",))
    return get_visible(policies, actor, "project", needs=needs, what="retry policy")
