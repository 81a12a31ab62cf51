"""Jobs: submit, list, look at, cancel."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.serializers import CancelInput, JobDetailOutput, JobInput, JobOutput, JobsQuery, ReceiptOutput
from jobs.lifecycle.cancel import cancel_job
from jobs.new_job import NewJob
from jobs.selectors.jobs import get_job, list_jobs
from jobs.services.submission import submit
from jobs.states import JobStatus
from orgs.access import Actor
from orgs.authentication import actor_of
from orgs.models import Role
from queues.models import Queue
from queues.selectors import get_queue, get_queue_by_path
from scheduler_project.lib.rest.paging import Window
from scheduler_project.lib.rest.views import ApiView, read_body, read_query

KEY_HEADER = "Idempotency-Key"


class JobsView(ApiView):
    def post(self, request: Request) -> Response:
        fields = read_body(request, JobInput)
        if fields["idempotency_key"] is None:
            fields["idempotency_key"] = request.headers.get(KEY_HEADER)
        queue = _queue_of(actor_of(request), fields)
        receipt = submit(queue, NewJob(**fields))
        location = {"Location": f"/api/jobs/{receipt.id}"}
        return Response(ReceiptOutput(receipt).data, status=201 if receipt.is_new else 200, headers=location)

    def get(self, request: Request) -> Response:
        query, actor = read_query(request, JobsQuery), actor_of(request)
        queue_id = query.get("queue_id")
        if queue_id is not None:
            get_queue(actor, queue_id, needs=Role.VIEWER)
        jobs = list_jobs(actor, queue_id=queue_id, status=query.get("status"), job_type=query.get("job_type"))
        window = Window.of(query)
        return Response(window.page(list(jobs[window.rows]), lambda job: JobOutput(job).data))


class JobView(ApiView):
    def get(self, request: Request, job_id: UUID) -> Response:
        return Response(JobDetailOutput(get_job(actor_of(request), job_id, needs=Role.VIEWER)).data)


class CancelView(ApiView):
    def post(self, request: Request, job_id: UUID) -> Response:
        reason = read_body(request, CancelInput).get("reason", "Cancelled through the API.")
        job = get_job(actor_of(request), job_id, needs=Role.MEMBER)
        status = cancel_job(job.pk, reason=reason)
        has_ended = status == JobStatus.CANCELLED
        shown = {"id": str(job.pk), "status": status.value, "cancel_requested": not has_ended}
        return Response(shown, status=200 if has_ended else 202)


def _queue_of(actor: Actor, fields: dict[str, Any]) -> Queue:
    """Takes the queue out of the fields of a submission and finds it."""
    path, queue_id = fields.pop("queue", None), fields.pop("queue_id", None)
    if path is not None:
        return get_queue_by_path(actor, path, needs=Role.MEMBER)
    return get_queue(actor, queue_id, needs=Role.MEMBER)
