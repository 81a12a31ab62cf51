"""Queues: create, list with their depths, pause, resume, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.hints import WORK, hint
from jobs.selectors.stats import depths_of, empty_depth
from jobs.services.closing import delete_queue
from orgs.access import Actor, Machine, get_project
from orgs.authentication import actor_of
from orgs.models import Project, Role
from queues.api.serializers import OfProjectQuery, PauseInput, QueueInput, QueueOutput
from queues.models import Queue
from queues.selectors import get_queue, list_queues
from queues.services import create_queue, pause_queue, resume_queue
from scheduler_project.lib.errors import ValidationFailed
from scheduler_project.lib.rest.paging import Window
from scheduler_project.lib.rest.views import ApiView, read_body, read_query


class QueuesView(ApiView):
    def post(self, request: Request) -> Response:
        fields = read_body(request, QueueInput)
        queue = create_queue(project_of(actor_of(request), fields), **fields)
        return Response({**QueueOutput(queue).data, "depth": empty_depth()}, status=201)

    def get(self, request: Request) -> Response:
        query, actor = read_query(request, OfProjectQuery), actor_of(request)
        project_id = query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        window = Window.of(query)
        rows = list(list_queues(actor, project_id)[window.rows])
        shown = iter(_with_depth(rows))
        return Response(window.page(rows, lambda _: next(shown)))


class QueueView(ApiView):
    def get(self, request: Request, queue_id: UUID) -> Response:
        [shown] = _with_depth([get_queue(actor_of(request), queue_id, needs=Role.VIEWER)])
        return Response(shown)

    def delete(self, request: Request, queue_id: UUID) -> Response:
        delete_queue(get_queue(actor_of(request), queue_id, needs=Role.ADMIN))
        return Response(status=204)


class PauseView(ApiView):
    def post(self, request: Request, queue_id: UUID) -> Response:
        reason = read_body(request, PauseInput)["reason"]
        queue = pause_queue(get_queue(actor_of(request), queue_id, needs=Role.ADMIN), reason=reason)
        return Response(_with_depth([queue])[0])


class ResumeView(ApiView):
    def post(self, request: Request, queue_id: UUID) -> Response:
        queue = resume_queue(get_queue(actor_of(request), queue_id, needs=Role.ADMIN))
        hint(WORK, str(queue.pk))
        return Response(_with_depth([queue])[0])


def project_of(actor: Actor, fields: dict[str, Any]) -> Project:
    """Takes the project out of the fields of something new and finds it; the holder of a key need not name his."""
    project_id = fields.pop("project_id", None)
    if project_id is None:
        if not isinstance(actor, Machine):
            raise ValidationFailed.of("project_id", "is needed")
        project_id = actor.project_id
    return get_project(actor, project_id, needs=Role.ADMIN)


def _with_depth(queues: Sequence[Queue]) -> list[dict[str, Any]]:
    depths = depths_of([queue.pk for queue in queues])
    return [{**QueueOutput(queue).data, "depth": depths[queue.pk]} for queue in queues]
