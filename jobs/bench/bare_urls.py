"""A REST view that does one INSERT and nothing else: the least that a submission over REST could cost."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.sql import run
from scheduler_project.lib.statements import Statement

INSERT = Statement(
    "bare_insert",
    "insert into jobs (id, project_id, queue_id, job_type, payload, status, run_at)"
    " select %(id)s, project_id, id, %(job_type)s, %(payload)s, 'queued', now() from queues where id = %(queue_id)s",
)


class BareView(APIView):
    """No key, no rights, no checks."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    def post(self, request: Request) -> Response:
        """Write the row."""
        asked: Any = request.data
        job_id = uuid7()
        run(INSERT, {**asked, "id": job_id, "payload": json.dumps(asked["payload"])})
        return Response({"id": str(job_id), "status": "queued"}, status=201)


def ready(_request: HttpRequest) -> HttpResponse:
    """It serves."""
    return HttpResponse()


urlpatterns = [path("bare", BareView.as_view()), path("readyz", ready)]
