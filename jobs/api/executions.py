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
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.paging import Key, PageQuery
from scheduler_project.lib.rest.views import ApiView, read_page

BY_CLAIM = (Key("fencing_number", "int"),)
OLDEST_LINE = (Key("ts", "time", is_descending=False), Key("id", "int", is_descending=False))


class ExecutionsView(ApiView):
    @describe({200: page_of(ExecutionOutput)}, query=PageQuery)
    def get(self, request: Request, job_id: UUID) -> Response:
        _, window = read_page(request, order=BY_CLAIM)
        job = get_job(actor_of(request), job_id, needs=Role.VIEWER)
        below = None if window.after is None else window.after[0]
        rows = list_executions(job, window.rows, below=below)
        return Response(window.page(rows, ExecutionOutput().to_representation))


class LogsView(ApiView):
    @describe({200: page_of(LogOutput)}, query=PageQuery)
    def get(self, request: Request, job_id: UUID) -> Response:
        _, window = read_page(request, order=OLDEST_LINE)
        job = get_job(actor_of(request), job_id, needs=Role.VIEWER)
        lines = window.read(list_logs(job))
        return Response(window.page(lines, lambda line: _shown(job, line)))


def _shown(job: Job, line: JobLog) -> dict[str, Any]:
    shown: dict[str, Any] = LogOutput(line).data
    if line.execution_id == job.lease_token:
        shown["execution_id"] = None  # the token of a running attempt is the right to end it
    return shown
