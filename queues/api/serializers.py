"""Shapes of queues and retry policies."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from queues.models import RetryPolicy
from queues.services import MAX_NAME_CHARS, MAX_REASON_CHARS
from scheduler_project.lib.rest.fields import Bool, Choice, Id, Input, Number, Text, Whole

# The numbers' bounds stand in queues.bounds, which answers for both doors.


class QueuePatch(Input):
    name = Text(max_length=MAX_NAME_CHARS)
    priority = Whole(required=False)
    max_concurrency = Whole(required=False, allow_null=True)
    max_concurrency_per_key = Whole(required=False)
    visibility_timeout_secs = Whole(required=False)
    default_retry_policy_id = Id(required=False, allow_null=True)
    rate_limit = Whole(required=False, allow_null=True)
    rate_period_secs = Whole(required=False, allow_null=True)


class QueueInput(QueuePatch):
    project_id = Id(required=False)  # only here: a queue never changes its project


class PauseInput(Input):
    reason = Text(max_length=MAX_REASON_CHARS, default="", allow_blank=True)


class RetryPolicyPatch(Input):
    name = Text(max_length=MAX_NAME_CHARS)
    strategy = Choice(choices=RetryPolicy.Strategy.values, required=False)
    base_delay_ms = Whole(required=False)
    multiplier = Number(required=False)
    max_delay_ms = Whole(required=False)
    max_attempts = Whole(required=False)
    jitter = Bool(required=False, default=True)


class RetryPolicyInput(RetryPolicyPatch):
    project_id = Id(required=False)


class QueueOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    name = serializers.CharField()
    priority = serializers.IntegerField()
    max_concurrency = serializers.IntegerField(allow_null=True)
    max_concurrency_per_key = serializers.IntegerField()
    is_paused = serializers.BooleanField()
    paused_reason = serializers.CharField(allow_blank=True)
    visibility_timeout_secs = serializers.IntegerField()
    default_retry_policy_id = serializers.UUIDField(allow_null=True)
    rate_limit = serializers.IntegerField(allow_null=True)
    rate_period_secs = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class DepthOutput(serializers.Serializer[Any]):
    queued = serializers.IntegerField()
    scheduled = serializers.IntegerField()
    claimed = serializers.IntegerField()
    running = serializers.IntegerField()
    dead_letter = serializers.IntegerField()


class QueueWithDepthOutput(QueueOutput):
    depth = DepthOutput()


class RetryPolicyOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    name = serializers.CharField()
    strategy = serializers.CharField()
    base_delay_ms = serializers.IntegerField()
    multiplier = serializers.FloatField()
    max_delay_ms = serializers.IntegerField()
    max_attempts = serializers.IntegerField()
    jitter = serializers.BooleanField()
    created_at = serializers.DateTimeField()
