"""Shapes of jobs, executions, log lines and workers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from jobs.new_job import LONGEST_DELAY_S, MAX_KEY_CHARS, MAX_TRACE_CHARS, MAX_TYPE_CHARS
from jobs.states import JobStatus
from queues.models import MAX_ATTEMPTS, PRIORITY_BOUND
from scheduler_project.lib.rest.fields import AnyJson, Choice, Id, Input, Moment, Number, Text, Whole
from scheduler_project.lib.rest.paging import PageQuery

MAX_REASON_CHARS = 500


class JobInput(Input):
    queue_id = Id(required=False)
    queue = Text(max_length=300, required=False)
    job_type = Text(max_length=MAX_TYPE_CHARS, trim_whitespace=False)
    payload = AnyJson(default=dict, allow_null=True)
    priority = Whole(min_value=-PRIORITY_BOUND, max_value=PRIORITY_BOUND, default=0)
    run_at = Moment(default=None, allow_null=True)
    delay_s = Number(min_value=0, max_value=LONGEST_DELAY_S, default=0.0)
    idempotency_key = Text(max_length=MAX_KEY_CHARS, trim_whitespace=False, default=None, allow_null=True)
    retry_policy_id = Id(default=None, allow_null=True)
    max_attempts = Whole(min_value=1, max_value=MAX_ATTEMPTS, default=None, allow_null=True)
    trace_id = Text(max_length=MAX_TRACE_CHARS, default="", allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("queue_id" in attrs) == ("queue" in attrs):
            raise ValidationError({"queue_id": ["give either queue_id or queue"]})
        if attrs["run_at"] is not None and attrs["delay_s"]:
            raise ValidationError({"run_at": ["give either run_at or delay_s"]})
        return attrs


class JobsQuery(PageQuery):
    queue_id = Id(required=False)
    status = Choice(choices=JobStatus.values, required=False)
    job_type = Text(max_length=MAX_TYPE_CHARS, required=False)


class CancelInput(Input):
    reason = Text(max_length=MAX_REASON_CHARS, required=False)


class ReceiptOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    queue_id = serializers.UUIDField()
    job_type = serializers.CharField()
    status = serializers.CharField()
    priority = serializers.IntegerField()
    run_at = serializers.DateTimeField()
    idempotency_key = serializers.CharField()
    trace_id = serializers.CharField()
    attempt = serializers.IntegerField()


class JobOutput(ReceiptOutput):
    max_attempts = serializers.IntegerField()
    retry_policy_id = serializers.UUIDField()
    batch_id = serializers.UUIDField()
    scheduled_job_id = serializers.UUIDField()
    worker_id = serializers.UUIDField(source="locked_by")
    lease_expires_at = serializers.DateTimeField()
    cancel_requested_at = serializers.DateTimeField()
    progress_percent = serializers.IntegerField()
    progress_note = serializers.CharField()
    error_message = serializers.CharField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    completed_at = serializers.DateTimeField()


class JobDetailOutput(JobOutput):
    payload = AnyJson()
    result = AnyJson()


class ExecutionOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    attempt_number = serializers.IntegerField()
    status = serializers.CharField()
    worker_id = serializers.UUIDField()
    claimed_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField()
    duration_ms = serializers.FloatField()
    error_message = serializers.CharField()
    error_stack = serializers.CharField()
    result = AnyJson()


class LogOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    execution_id = serializers.UUIDField()
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
    latest = AnyJson()
