"""Jobs: submit, list, look at, wait for, explain, cancel, retry."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.answers import CancelledOutput, ExplainOutput, JobStatusOutput
from jobs.api.serializers import (
    CancelInput,
    JobDetailOutput,
    JobInput,
    JobOutput,
    JobQuery,
    JobsQuery,
    ReceiptOutput,
    RetryInput,
)
from jobs.lifecycle.cancel import cancel_from, cancel_job
from jobs.lifecycle.requeue import requeue_from, requeue_job
from jobs.new_job import NewJob
from jobs.selectors.explain import explain
from jobs.selectors.job_lists import JobFilter, page_of_jobs, queue_ids_of
from jobs.selectors.jobs import get_job, has_ended
from jobs.services.submission import submit_to
from jobs.states import TERMINAL, JobStatus
from orgs.access import Actor, Person
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from queues.selectors import get_queue
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.parking import look_until
from scheduler_project.lib.rest.rows import row_of
from scheduler_project.lib.rest.views import ApiView, read_body, read_page, read_query
from scheduler_project.lib.sql import past_deadlocks

KEY_HEADER = "Idempotency-Key"
CANCELLED_THROUGH_API = "Cancelled through the API."


_show, _acknowledge = row_of(JobOutput()), row_of(ReceiptOutput())


class JobsView(ApiView):
    @describe(
        {201: ReceiptOutput, 200: ReceiptOutput},
        body=JobInput,
        headers={KEY_HEADER: "The idempotency key, where the body has none."},
        example={"queue": "mail", "job_type": "mail.send", "payload": {"to": "ada@example.com"}},
    )
    def post(self, request: Request) -> Response:
        fields = read_body(request, JobInput)
        if fields["idempotency_key"] is None:
            fields["idempotency_key"] = request.headers.get(KEY_HEADER)
        path, queue_id = fields.pop("queue", None), fields.pop("queue_id", None)
        receipt = submit_to(actor_of(request), queue_id=queue_id, path=path, job=NewJob(**fields))
        location = {"Location": f"/api/jobs/{receipt.id}"}
        return Response(_acknowledge(receipt), status=201 if receipt.is_new else 200, headers=location)

    @describe({200: page_of(JobOutput)}, query=JobsQuery)
    def get(self, request: Request) -> Response:
        (query, window), actor = read_page(request, JobsQuery), actor_of(request)
        queue_id = query.get("queue_id")
        if queue_id is not None:
            get_queue(actor, queue_id, needs=Role.VIEWER)
        wanted = JobFilter(
            queue_ids=queue_ids_of(actor) if queue_id is None else [queue_id],
            status=query.get("status"),
            job_type=query.get("job_type"),
            created_from=query.get("created_from"),
            created_to=query.get("created_to"),
        )
        page = page_of_jobs(wanted, cursor=window.after[0] if window.after else None, rows=window.rows)
        return Response(window.page(page.jobs, _show, resume=page.resume_below))


class JobView(ApiView):
    @describe({200: JobDetailOutput}, query=JobQuery)
    def get(self, request: Request, job_id: UUID) -> Response:
        wait_ms, actor = read_query(request, JobQuery)["wait_ms"], actor_of(request)
        job = get_job(actor, job_id, needs=Role.VIEWER)
        if wait_ms and job.status not in TERMINAL:
            look_until(lambda: has_ended(job_id), wait_ms / 1000)
            job = get_job(actor, job_id, needs=Role.VIEWER)
        return Response(JobDetailOutput(job).data)


class ExplainView(ApiView):
    @describe({200: ExplainOutput})
    def get(self, request: Request, job_id: UUID) -> Response:
        job = get_job(actor_of(request), job_id, needs=Role.VIEWER)
        reasons = [{"code": reason.code, "message": reason.message, **reason.more} for reason in explain(job)]
        return Response({"job_id": str(job.pk), "status": job.status, "reasons": reasons})


class CancelView(ApiView):
    @describe({200: CancelledOutput, 202: CancelledOutput}, body=CancelInput)
    def post(self, request: Request, job_id: UUID) -> Response:
        fields = read_body(request, CancelInput)
        status = past_deadlocks(lambda: self._cancel(actor_of(request), job_id, fields))
        has_ended = status in TERMINAL
        shown = {"id": str(job_id), "status": status.value, "cancel_requested": not has_ended}
        return Response(shown, status=200 if has_ended else 202)

    def _cancel(self, actor: Actor, job_id: UUID, fields: dict[str, Any]) -> JobStatus:
        job = get_job(actor, job_id, needs=Role.MEMBER)
        reason, with_downstream = fields.get("reason", CANCELLED_THROUGH_API), fields["with_downstream"]
        with deed(actor, "job.cancel", job) as doing:
            if with_downstream:
                cancel_from(job_id, reason=reason)
                status = JobStatus(get_job(actor, job_id, needs=Role.MEMBER).status)
            else:
                status = cancel_job(job_id, reason=reason)
            job.status = status.value
            doing.says(reason=reason, with_downstream=with_downstream)
        return status


class RetryView(ApiView):
    @describe({200: JobStatusOutput}, body=RetryInput)
    def post(self, request: Request, job_id: UUID) -> Response:
        with_downstream = read_body(request, RetryInput)["with_downstream"]
        past_deadlocks(lambda: self._retry(actor_of(request), job_id, with_downstream=with_downstream))
        return Response({"id": str(job_id), "status": JobStatus.QUEUED.value})

    def _retry(self, actor: Actor, job_id: UUID, *, with_downstream: bool) -> None:
        job = get_job(actor, job_id, needs=Role.MEMBER)
        by = actor.user_id if isinstance(actor, Person) else None
        with deed(actor, "job.retry", job) as doing:
            if with_downstream:
                requeue_from(job_id, by=by)
            else:
                requeue_job(job_id, by=by)
            job.status = JobStatus.QUEUED.value
            doing.says(with_downstream=with_downstream)
