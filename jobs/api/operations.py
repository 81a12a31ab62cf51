"""Operations: cancel, retry, redrive or discard many at once; asked for here, carried out by the scheduler."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.answers import DryRunOutput
from jobs.models import Operation
from jobs.new_job import MAX_TYPE_CHARS
from jobs.selectors.operations import canary_state, get_operation, list_operations
from jobs.services.operations import (
    MAX_CANARY,
    MAX_IDS,
    MAX_PACE,
    MAX_REASON_CHARS,
    NewOperation,
    abort,
    prepare,
    start,
)
from jobs.states import JobStatus
from orgs.access import Machine, get_project, project_of_new
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from queues.selectors import get_queue
from scheduler_project.lib.errors import NotFound
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.fields import AnyJson, Bool, Choice, Id, Input, Moment, Text, Whole
from scheduler_project.lib.rest.paging import OfProjectQuery
from scheduler_project.lib.rest.views import ApiView, read_body, read_page


class FilterInput(Input):
    queue_id = Id(required=False)
    status = Choice(choices=JobStatus.values, required=False)
    job_type = Text(max_length=MAX_TYPE_CHARS, required=False)
    created_from = Moment(required=False)
    created_to = Moment(required=False)


class OperationInput(Input):
    project_id = Id(required=False)
    action = Choice(choices=Operation.Action.values)
    filter = FilterInput(required=False)
    ids = serializers.ListField(child=Id(), min_length=1, max_length=MAX_IDS, required=False)
    reason = Text(max_length=MAX_REASON_CHARS, default="", allow_blank=True)
    canary = Whole(min_value=1, max_value=MAX_CANARY, allow_null=True, default=None)
    pace = Whole(min_value=1, max_value=MAX_PACE, allow_null=True, default=None)
    pace_per = Choice(choices=Operation.Per.values, required=False)
    dry_run = Bool(default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("filter" in attrs) == ("ids" in attrs):
            raise ValidationError({"filter": ["give either filter or ids; {} is everything of the project"]})
        if "pace_per" in attrs and attrs["pace"] is None:
            raise ValidationError({"pace_per": ["says what pace is counted by: give pace too"]})
        return attrs


class OperationOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    action = serializers.CharField()
    filter = AnyJson(allow_null=True)
    reason = serializers.CharField()
    state = serializers.CharField()
    estimate = serializers.IntegerField(allow_null=True)
    is_estimate_capped = serializers.BooleanField()
    matched = serializers.IntegerField()
    changed = serializers.IntegerField()
    skipped = serializers.IntegerField()
    failed = serializers.IntegerField()
    last_error = serializers.CharField(allow_null=True)
    canary = serializers.IntegerField(allow_null=True)
    canary_jobs = serializers.ListField(child=serializers.UUIDField(), allow_null=True)
    canary_passed_at = serializers.DateTimeField(allow_null=True)
    pace = serializers.IntegerField(allow_null=True)
    pace_per = serializers.CharField()
    next_at = serializers.DateTimeField(allow_null=True)
    stopped_because = serializers.CharField(allow_null=True)
    created_by = serializers.UUIDField(source="created_by_id", allow_null=True)
    api_key_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class OperationWithProgressOutput(OperationOutput):
    progress = serializers.FloatField(allow_null=True)
    canary_state = serializers.CharField(allow_null=True)


class OperationsView(ApiView):
    @describe(
        {202: OperationWithProgressOutput, 200: DryRunOutput},
        body=OperationInput,
        example={"action": "retry", "filter": {"status": "dead_letter"}, "reason": "the mail server is back"},
    )
    def post(self, request: Request) -> Response:
        fields, actor = read_body(request, OperationInput), actor_of(request)
        project = project_of_new(actor, fields.pop("project_id", None), needs=Role.MEMBER)
        wanted = fields.get("filter", {})
        if "queue_id" in wanted:
            queue = get_queue(actor, wanted["queue_id"], needs=Role.MEMBER)
            if queue.project_id != project.pk:
                raise NotFound("There is no such queue.")
        given = {
            name: fields[name] for name in ("action", "ids", "reason", "canary", "pace", "pace_per") if name in fields
        }
        new = NewOperation(filter=wanted, **given)
        operation, estimate = prepare(project, new)
        shown = {"count": estimate.count, "is_capped": estimate.is_capped, "sample": estimate.sample}
        if fields["dry_run"]:
            return Response({"dry_run": True, "matched": shown})
        with deed(actor, "operation.create") as doing:
            start(
                operation,
                by=None if isinstance(actor, Machine) else actor.user_id,
                api_key_id=actor.key_id if isinstance(actor, Machine) else None,
            )
            doing.on(operation)
        location = {"Location": f"/api/operations/{operation.pk}"}
        return Response(shown_operation(operation), status=202, headers=location)

    @describe({200: page_of(OperationWithProgressOutput)}, query=OfProjectQuery)
    def get(self, request: Request) -> Response:
        (query, window), actor = read_page(request, OfProjectQuery), actor_of(request)
        project_id = query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        return Response(window.page(window.read(list_operations(actor, project_id)), shown_operation))


class OperationView(ApiView):
    @describe({200: OperationWithProgressOutput})
    def get(self, request: Request, operation_id: UUID) -> Response:
        return Response(shown_operation(get_operation(actor_of(request), operation_id, needs=Role.VIEWER)))


class AbortView(ApiView):
    @describe({200: OperationWithProgressOutput})
    def post(self, request: Request, operation_id: UUID) -> Response:
        actor = actor_of(request)
        with deed(actor, "operation.abort", get_operation(actor, operation_id, needs=Role.MEMBER)) as doing:
            operation = abort(operation_id)
            doing.on(operation)
        return Response(shown_operation(operation))


def shown_operation(operation: Operation) -> dict[str, Any]:
    """An operation with how far it is; null while nobody can know."""
    shown: dict[str, Any] = OperationOutput(operation).data
    return {**shown, "progress": _progress(operation), "canary_state": canary_state(operation)}


def _progress(operation: Operation) -> float | None:
    if operation.state == Operation.State.COMPLETED:
        return 1.0
    if operation.is_estimate_capped:
        return None
    return round(min(0.99, operation.matched / operation.estimate), 2) if operation.estimate else 0.0
