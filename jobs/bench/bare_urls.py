"""A REST view that does one INSERT and nothing else: the least that a submission over REST could cost."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection  # noqa: TID251 - as bare as can be
from django.http import HttpRequest, HttpResponse
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from scheduler_project.lib.ids import uuid7

INSERT = (
    "insert into jobs (id, project_id, queue_id, job_type, payload, status, run_at)"
    " select %s, project_id, id, %s, %s, 'queued', now() from queues where id = %s"
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
        with connection.cursor() as cursor:
            cursor.execute(INSERT, [job_id, asked["job_type"], json.dumps(asked["payload"]), asked["queue_id"]])
        return Response({"id": str(job_id), "status": "queued"}, status=201)


def ready(_request: HttpRequest) -> HttpResponse:
    """It serves."""
    return HttpResponse()


urlpatterns = [path("bare", BareView.as_view()), path("readyz", ready)]
