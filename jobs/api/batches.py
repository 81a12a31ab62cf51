"""Batches: create, fill, close, cancel, see how far they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.answers import BatchNumbersOutput, OutcomeOutput, OutcomesOutput
from jobs.api.items import read_items, shown_outcome
from jobs.api.job_type_field import JobType
from jobs.api.serializers import MAX_BULK, EmptyInput
from jobs.models import JobBatch
from jobs.new_job import NewJob, checked
from jobs.selectors.batch_lists import get_batch, list_batches, progress_each
from jobs.selectors.batches import Progress
from jobs.services.batches import CALLBACKS, cancel_batch, close_batch, create_batch
from jobs.services.bulk import add_to_batch
from orgs.access import get_project, project_of_new
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from scheduler_project.lib.errors import Conflict, ValidationFailed
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.fields import AnyJson, Bool, Id, Input, Text
from scheduler_project.lib.rest.paging import OfProjectQuery
from scheduler_project.lib.rest.views import ApiView, read_body, read_page
from scheduler_project.lib.sealed_json import masked


class BatchJobsInput(Input):
    jobs = serializers.ListField(child=AnyJson(), min_length=1, max_length=MAX_BULK)


class CallbackInput(Input):
    queue_id = Id()
    job_type = JobType()
    payload = AnyJson(default=dict)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        try:
            # What the handler says of the payload is judged with the batch's numbers in it, when the batch is made.
            checked([NewJob(job_type=attrs["job_type"], payload=attrs["payload"], is_stored=True)])
        except ValidationFailed as error:
            raise ValidationError({detail.field: [detail.message] for detail in error.details}) from None
        return {**attrs, "queue_id": str(attrs["queue_id"])}


class BatchInput(Input):
    project_id = Id(required=False)
    name = Text(max_length=200)
    parent_id = Id(default=None, allow_null=True)
    on_success = CallbackInput(default=None, allow_null=True)
    on_end = CallbackInput(default=None, allow_null=True)
    on_failure = CallbackInput(default=None, allow_null=True)
    jobs = serializers.ListField(child=AnyJson(), max_length=MAX_BULK, default=None)
    close = Bool(default=None, allow_null=True)


class BatchOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    parent_id = serializers.UUIDField(allow_null=True)
    name = serializers.CharField()
    status = serializers.CharField()
    cancel_requested_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class BatchWithNumbersOutput(BatchOutput, BatchNumbersOutput):
    pass


class BatchDetailOutput(BatchWithNumbersOutput):
    on_success = AnyJson(allow_null=True)
    on_end = AnyJson(allow_null=True)
    on_failure = AnyJson(allow_null=True)


class NewBatchOutput(BatchWithNumbersOutput):
    results = OutcomeOutput(many=True)


class CancelledBatchOutput(BatchWithNumbersOutput):
    # Those that were waiting; the numbers of the batch have all.
    cancelled_jobs = serializers.IntegerField()


class BatchesView(ApiView):
    counted_field = "jobs"

    @describe(
        {201: NewBatchOutput},
        body=BatchInput,
        example={"name": "night", "jobs": [{"queue": "mail", "job_type": "mail.send"}]},
    )
    def post(self, request: Request) -> Response:
        fields, actor = read_body(request, BatchInput), actor_of(request)
        project = project_of_new(actor, fields.pop("project_id", None), needs=Role.MEMBER)
        jobs, close = fields.pop("jobs"), fields.pop("close")
        callbacks = {kind: fields.pop(kind) for kind in CALLBACKS if fields.get(kind) is not None}
        items = read_items(actor, jobs or [])
        with deed(actor, "batch.create") as doing:
            batch = create_batch(project.pk, fields["name"], parent_id=fields["parent_id"], callbacks=callbacks)
            outcomes = add_to_batch(batch.pk, project.pk, items)
            if jobs is not None if close is None else close:
                close_batch(batch.pk)
            batch.refresh_from_db()
            doing.on(batch)
            doing.says(jobs=len(outcomes))
        [shown] = _shown([batch])
        results = [shown_outcome(index, outcome) for index, outcome in enumerate(outcomes)]
        return Response({**shown, "results": results}, status=201, headers={"Location": f"/api/batches/{batch.pk}"})

    @describe({200: page_of(BatchWithNumbersOutput)}, query=OfProjectQuery)
    def get(self, request: Request) -> Response:
        (query, window), actor = read_page(request, OfProjectQuery), actor_of(request)
        project_id = query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        rows = window.read(list_batches(actor, project_id))
        shown = iter(_shown(rows[: window.limit]))
        return Response(window.page(rows, lambda _: next(shown)))


class BatchView(ApiView):
    @describe({200: BatchDetailOutput})
    def get(self, request: Request, batch_id: UUID) -> Response:
        batch = get_batch(actor_of(request), batch_id, needs=Role.VIEWER)
        callbacks = {kind: masked(getattr(batch, kind)) for kind in CALLBACKS}
        return Response({**_shown([batch])[0], **callbacks})


class BatchJobsView(ApiView):
    counted_field = "jobs"

    @describe(
        {201: OutcomesOutput},
        body=BatchJobsInput,
        example={"jobs": [{"queue": "mail", "job_type": "mail.send"}]},
    )
    def post(self, request: Request, batch_id: UUID) -> Response:
        given, actor = read_body(request, BatchJobsInput)["jobs"], actor_of(request)
        batch = get_batch(actor, batch_id, needs=Role.MEMBER)
        items = read_items(actor, given)
        with deed(actor, "batch.add_jobs", batch) as doing:
            outcomes = add_to_batch(batch_id, batch.project_id, items)
            doing.says(jobs=len(outcomes))
        return Response({"results": [shown_outcome(i, outcome) for i, outcome in enumerate(outcomes)]}, status=201)


class CloseView(ApiView):
    @describe({200: BatchWithNumbersOutput}, body=EmptyInput)
    def post(self, request: Request, batch_id: UUID) -> Response:
        read_body(request, EmptyInput)
        actor = actor_of(request)
        batch = get_batch(actor, batch_id, needs=Role.MEMBER)
        with deed(actor, "batch.close", batch):
            close_batch(batch_id)
            batch.refresh_from_db()
        return Response(_shown([batch])[0])


class CancelBatchView(ApiView):
    @describe({202: CancelledBatchOutput}, body=EmptyInput)
    def post(self, request: Request, batch_id: UUID) -> Response:
        read_body(request, EmptyInput)
        actor = actor_of(request)
        batch = get_batch(actor, batch_id, needs=Role.MEMBER)
        if batch.ended_at is not None:
            raise Conflict(f"The batch is {batch.status} already.")
        # Written down first: a large batch is cancelled in steps, each of which holds by itself.
        with deed(actor, "batch.cancel", batch):
            close_batch(batch_id)
            batch.refresh_from_db()
        count = cancel_batch(batch_id)
        batch.refresh_from_db()
        return Response({**_shown([batch])[0], "cancelled_jobs": count}, status=202)


def _shown(batches: Sequence[JobBatch]) -> list[dict[str, Any]]:
    found = progress_each(batches)
    return [{**BatchOutput(batch).data, **_numbers(found[batch.pk])} for batch in batches]


def _numbers(progress: Progress) -> dict[str, Any]:
    ended = progress.total - progress.pending
    return {
        "total_jobs": progress.total,
        "completed_jobs": progress.completed,
        "failed_jobs": progress.failed,
        "cancelled_jobs": progress.cancelled,
        "pending_jobs": progress.pending,
        "progress": round(ended / progress.total, 4) if progress.total else None,
    }
