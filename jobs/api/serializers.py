"""Shapes of jobs, executions, log lines and workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from jobs.api.job_type_field import JobType
from jobs.api.parents import MAX_REF_CHARS, ParentsField, Wanted
from jobs.new_job import (
    LONGEST_DELAY_S,
    LONGEST_TIMEOUT_S,
    MAX_KEY_CHARS,
    MAX_TRACE_CHARS,
    MAX_TYPE_CHARS,
    SHORTEST_TIMEOUT_S,
)
from jobs.states import JobStatus
from queues.models import MAX_ATTEMPTS, PRIORITY_BOUND
from scheduler_project.lib.rest.fields import AnyJson, Bool, Choice, Digits, Id, Input, Moment, Number, Text, Whole
from scheduler_project.lib.rest.paging import PageQuery
from scheduler_project.lib.rest.parking import MAX_WAIT_MS

MAX_REASON_CHARS = 500
MAX_BULK = 1_000


class JobInput(Input):
    queue_id = Id(required=False)
    queue = Text(max_length=300, required=False)
    job_type = JobType()
    payload = AnyJson(default=dict, allow_null=True)
    priority = Whole(min_value=-PRIORITY_BOUND, max_value=PRIORITY_BOUND, default=0)
    run_at = Moment(default=None, allow_null=True)
    delay_s = Number(min_value=0, max_value=LONGEST_DELAY_S, default=0.0)
    idempotency_key = Text(max_length=MAX_KEY_CHARS, trim_whitespace=False, default=None, allow_null=True)
    concurrency_key = Text(max_length=MAX_KEY_CHARS, trim_whitespace=False, default=None, allow_null=True)
    retry_policy_id = Id(default=None, allow_null=True)
    timeout_s = Number(min_value=SHORTEST_TIMEOUT_S, max_value=LONGEST_TIMEOUT_S, default=None, allow_null=True)
    start_deadline = Moment(default=None, allow_null=True)
    deadline = Moment(default=None, allow_null=True)
    max_attempts = Whole(min_value=1, max_value=MAX_ATTEMPTS, default=None, allow_null=True)
    trace_id = Text(max_length=MAX_TRACE_CHARS, default="", allow_blank=True)
    depends_on = ParentsField(default=tuple)

    def validate_depends_on(self, wanted: Sequence[Wanted]) -> Sequence[Any]:
        errors: dict[Any, Any] = {}
        parents = []
        for index, parent in enumerate(wanted):
            try:
                parents.append(parent.as_parent())
            except ValidationError as error:
                errors[index] = error.detail
        if errors:
            raise ValidationError(errors)
        return parents

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("queue_id" in attrs) == ("queue" in attrs):
            raise ValidationError({"queue_id": ["give either queue_id or queue"]})
        if attrs["run_at"] is not None and attrs["delay_s"]:
            raise ValidationError({"run_at": ["give either run_at or delay_s"]})
        return attrs


class BulkItemInput(JobInput):
    ref = Text(max_length=MAX_REF_CHARS, default=None)

    def validate_depends_on(self, wanted: Sequence[Wanted]) -> Sequence[Any]:
        return wanted  # what they mean depends on the names in the whole request


class BulkInput(Input):
    jobs = serializers.ListField(child=AnyJson(), min_length=1, max_length=MAX_BULK)
    atomic = Bool(default=True)


class JobsQuery(PageQuery):
    queue_id = Id(required=False)
    status = Choice(choices=JobStatus.values, required=False)
    job_type = Text(max_length=MAX_TYPE_CHARS, required=False)
    created_from = Moment(required=False)
    created_to = Moment(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "job_type" in attrs and "queue_id" not in attrs:
            raise ValidationError({"job_type": ["needs queue_id beside it: no index holds the types of all queues"]})
        return super().validate(attrs)


class JobQuery(Input):
    wait_ms = Digits(min_value=0, max_value=MAX_WAIT_MS, default=0)


class EmptyInput(Input):
    """A body without fields."""


class CancelInput(Input):
    reason = Text(max_length=MAX_REASON_CHARS, required=False)
    with_downstream = Bool(default=False)


class RetryInput(Input):
    with_downstream = Bool(default=False)


class ReceiptOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    queue_id = serializers.UUIDField()
    job_type = serializers.CharField()
    status = serializers.CharField()
    priority = serializers.IntegerField()
    run_at = serializers.DateTimeField()
    idempotency_key = serializers.CharField(allow_null=True)
    trace_id = serializers.CharField()
    attempt = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class JobOutput(ReceiptOutput):
    max_attempts = serializers.IntegerField()
    retry_policy_id = serializers.UUIDField(allow_null=True)
    batch_id = serializers.UUIDField(allow_null=True)
    concurrency_key = serializers.CharField(allow_null=True)
    timeout_s = serializers.FloatField(allow_null=True)
    start_deadline = serializers.DateTimeField(allow_null=True)
    deadline = serializers.DateTimeField(allow_null=True)
    circuit = serializers.CharField(allow_null=True)
    scheduled_job_id = serializers.UUIDField(allow_null=True)
    worker_id = serializers.UUIDField(source="locked_by", allow_null=True)
    lease_expires_at = serializers.DateTimeField(allow_null=True)
    cancel_requested_at = serializers.DateTimeField(allow_null=True)
    progress_percent = serializers.IntegerField(allow_null=True)
    progress_note = serializers.CharField(allow_null=True)
    error_message = serializers.CharField(allow_null=True)
    updated_at = serializers.DateTimeField()
    completed_at = serializers.DateTimeField(allow_null=True)


class JobDetailOutput(JobOutput):
    payload = AnyJson(allow_null=True)
    result = AnyJson(allow_null=True)


class ExecutionOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField(allow_null=True)
    attempt_number = serializers.IntegerField()
    status = serializers.CharField()
    worker_id = serializers.UUIDField(allow_null=True)
    claimed_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    duration_ms = serializers.FloatField(allow_null=True)
    error_message = serializers.CharField(allow_null=True)
    error_stack = serializers.CharField(allow_null=True)
    result = AnyJson(allow_null=True)


class LogOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    execution_id = serializers.UUIDField(allow_null=True)
    ts = serializers.DateTimeField()
    level = serializers.CharField()
    message = serializers.CharField()


class WorkerOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    hostname = serializers.CharField()
    pid = serializers.IntegerField()
    version = serializers.CharField()
    subscribed_queues = AnyJson()
    max_concurrency = serializers.IntegerField()
    status = serializers.CharField()
    started_at = serializers.DateTimeField()
    last_seen_at = serializers.DateTimeField()
    latest = AnyJson(allow_null=True)
