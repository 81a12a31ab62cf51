"""Who works now."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.serializers import WorkerOutput
from jobs.models import Worker
from jobs.selectors.workers import list_alive_workers
from orgs.authentication import person_of
from orgs.selectors import list_organizations, list_projects
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.paging import Key, PageQuery
from scheduler_project.lib.rest.views import ApiView, read_page

BY_HOST = (Key("hostname", "text", is_descending=False), Key("id", is_descending=False))


class WorkersView(ApiView):
    @describe({200: page_of(WorkerOutput)}, query=PageQuery)
    def get(self, request: Request) -> Response:
        (_, window), person = read_page(request, order=BY_HOST), person_of(request)
        slugs = set(list_organizations(person.user_id).values_list("slug", flat=True))
        workers = window.read(list_alive_workers(list_projects(person).order_by().values("pk")))
        return Response(window.page(workers, lambda worker: _shown(worker, slugs)))


def _shown(worker: Worker, slugs: set[str]) -> dict[str, Any]:
    """Workers are shared by all; the names of other organizations' queues are not."""
    shown: dict[str, Any] = WorkerOutput(worker).data
    shown["subscribed_queues"] = [path for path in worker.subscribed_queues if path.split("/")[0] in slugs]
    return shown
