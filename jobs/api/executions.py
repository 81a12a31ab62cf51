"""A job's attempts and what they logged."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.serializers import ExecutionOutput, LogOutput
from jobs.models import Job, JobLog
from jobs.selectors.executions import list_executions, list_logs
from jobs.selectors.jobs import get_job
from orgs.authentication import actor_of
from orgs.models import Role
from scheduler_project.lib.rest.paging import PageQuery, Window
from scheduler_project.lib.rest.views import ApiView, read_query


class ExecutionsView(ApiView):
    def get(self, request: Request, job_id: UUID) -> Response:
        window = Window.of(read_query(request, PageQuery))
        job = get_job(actor_of(request), job_id, needs=Role.VIEWER)
        rows = list_executions(job, window.rows)
        return Response(window.page(rows, lambda execution: ExecutionOutput(execution).data))


class LogsView(ApiView):
    def get(self, request: Request, job_id: UUID) -> Response:
        window = Window.of(read_query(request, PageQuery))
        job = get_job(actor_of(request), job_id, needs=Role.VIEWER)
        lines = list(list_logs(job)[window.rows])
        return Response(window.page(lines, lambda line: _shown(job, line)))


def _shown(job: Job, line: JobLog) -> dict[str, Any]:
    shown: dict[str, Any] = LogOutput(line).data
    if line.execution_id == job.lease_token:
        shown["execution_id"] = None  # the token of a running attempt is the right to end it
    return shown
