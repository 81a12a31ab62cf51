"""Queues: create, list with their depths, change, pause, resume, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.events import QUEUE, tell
from jobs.hints import WORK, hint
from jobs.selectors.stats import depths_of, empty_depth
from jobs.services.closing import delete_queue
from jobs.services.pausing import tell_pause, wait_until_begun
from orgs.access import get_project, project_of_new
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from queues.api.serializers import PauseInput, QueueInput, QueueOutput, QueuePatch, QueueWithDepthOutput
from queues.models import Queue
from queues.selectors import get_queue, list_queues
from queues.services import create_queue, locked, pause_queue, resume_queue, update_queue
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.paging import OfProjectQuery
from scheduler_project.lib.rest.tags import (
    IF_MATCH_HEADER,
    IF_NONE_MATCH_HEADER,
    refuse_if_changed,
    tagged,
    unless_known,
)
from scheduler_project.lib.rest.views import ApiView, read_body, read_page, read_patch


class QueuesView(ApiView):
    @describe({201: QueueWithDepthOutput}, body=QueueInput)
    def post(self, request: Request) -> Response:
        fields, actor = read_body(request, QueueInput), actor_of(request)
        project = project_of_new(actor, fields.pop("project_id", None), needs=Role.ADMIN)
        with deed(actor, "queue.create") as doing:
            queue = create_queue(project, **fields)
            doing.on(queue)
            tell(QUEUE, queue.project_id, queue.pk, "created")
        shown = {**QueueOutput(queue).data, "depth": empty_depth()}
        return tagged(shown, settings=settings_of(queue), status=201)

    @describe({200: page_of(QueueWithDepthOutput)}, query=OfProjectQuery)
    def get(self, request: Request) -> Response:
        query, window = read_page(request, OfProjectQuery)
        actor, project_id = actor_of(request), query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        rows = window.read(list_queues(actor, project_id))
        shown = iter(_with_depth(rows[: window.limit]))
        return Response(window.page(rows, lambda _: next(shown)))


class QueueView(ApiView):
    @describe({200: QueueWithDepthOutput, 304: None}, headers=IF_NONE_MATCH_HEADER)
    def get(self, request: Request, queue_id: UUID) -> Response:
        queue = get_queue(actor_of(request), queue_id, needs=Role.VIEWER)
        return unless_known(request, _with_depth([queue])[0], settings=settings_of(queue))

    @describe({200: QueueWithDepthOutput}, patch=QueuePatch, headers=IF_MATCH_HEADER)
    def patch(self, request: Request, queue_id: UUID) -> Response:
        changes = read_patch(request, QueuePatch)
        return _shown(_change(request, queue_id, "queue.update", lambda queue: update_queue(queue, **changes)))

    @describe({204: None}, headers=IF_MATCH_HEADER)
    def delete(self, request: Request, queue_id: UUID) -> Response:
        actor = actor_of(request)
        get_queue(actor, queue_id, needs=Role.ADMIN)
        with locked(queue_id):
            queue = get_queue(actor, queue_id, needs=Role.ADMIN)
            refuse_if_changed(request, settings_of(queue))
            with deed(actor, "queue.delete", queue, is_end=True):
                delete_queue(queue)
                tell(QUEUE, queue.project_id, queue.pk, "deleted")
        return Response(status=204)


class PauseView(ApiView):
    @describe({200: QueueWithDepthOutput}, body=PauseInput, headers=IF_MATCH_HEADER)
    def post(self, request: Request, queue_id: UUID) -> Response:
        reason = read_body(request, PauseInput)["reason"]
        _change(request, queue_id, "queue.pause", lambda queue: pause_queue(queue, reason=reason))
        wait_until_begun(queue_id)
        return _shown(get_queue(actor_of(request), queue_id, needs=Role.ADMIN))


class ResumeView(ApiView):
    @describe({200: QueueWithDepthOutput}, headers=IF_MATCH_HEADER)
    def post(self, request: Request, queue_id: UUID) -> Response:
        queue = _change(request, queue_id, "queue.resume", resume_queue)
        hint(WORK, str(queue_id))
        return _shown(queue)


def settings_of(queue: Queue) -> dict[str, Any]:
    """What people set of a queue."""
    return {name: value for name, value in QueueOutput(queue).data.items() if name not in ("updated_at", "created_at")}


def _change(request: Request, queue_id: UUID, action: str, change: Callable[[Queue], Queue]) -> Queue:
    """Change a queue while no claim is under way. It is sought before, so that strangers lock nothing."""
    actor = actor_of(request)
    get_queue(actor, queue_id, needs=Role.ADMIN)
    with locked(queue_id):
        queue = get_queue(actor, queue_id, needs=Role.ADMIN)
        refuse_if_changed(request, settings_of(queue))
        with deed(actor, action, queue):
            was_paused = queue.is_paused
            change(queue)
            tell_pause(queue, was_paused=was_paused)
            tell(QUEUE, queue.project_id, queue.pk, f"{action.removeprefix('queue.').removesuffix('e')}ed")
    return queue


def _shown(queue: Queue) -> Response:
    return tagged(_with_depth([queue])[0], settings=settings_of(queue))


def _with_depth(queues: Sequence[Queue]) -> list[dict[str, Any]]:
    depths = depths_of([queue.pk for queue in queues])
    return [{**QueueOutput(queue).data, "depth": depths[queue.pk]} for queue in queues]
