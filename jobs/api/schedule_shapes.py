"""Shapes of schedules and of the ledger of their due times."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from jobs.api.job_type_field import JobType
from jobs.models import ScheduledJob
from jobs.new_job import LONGEST_TIMEOUT_S, SHORTEST_TIMEOUT_S
from scheduler_project.lib.rest.fields import AnyJson, Bool, Choice, Flag, Id, Input, Moment, Number, Text, Whole
from scheduler_project.lib.rest.paging import PageQuery

_MOST_SECS = 366 * 86_400
_MOST_FIRES = 1_000_000_000


class ScheduleInput(Input):
    queue_id = Id(required=False)
    queue = Text(max_length=300, required=False)
    name = Text(max_length=200)
    cron_expression = Text(max_length=120, required=False, allow_blank=True)
    run_once_at = Moment(required=False, allow_null=True)
    timezone = Text(max_length=64, required=False)
    job_type = JobType()
    payload_template = AnyJson(required=False, allow_null=True)
    retry_policy_id = Id(required=False, allow_null=True)
    gap_policy = Choice(choices=ScheduledJob.GapPolicy.values, required=False)
    repeat_policy = Choice(choices=ScheduledJob.RepeatPolicy.values, required=False)
    misfire_policy = Choice(choices=ScheduledJob.MisfirePolicy.values, required=False)
    misfire_grace_secs = Whole(min_value=0, max_value=_MOST_SECS, required=False)
    misfire_cap = Whole(min_value=1, max_value=1_000, required=False)
    overlap_policy = Choice(choices=ScheduledJob.OverlapPolicy.values, required=False)
    starts_at = Moment(required=False, allow_null=True)
    ends_at = Moment(required=False, allow_null=True)
    jitter_secs = Whole(min_value=0, max_value=86_400, required=False)
    max_fires = Whole(min_value=1, max_value=_MOST_FIRES, required=False, allow_null=True)
    timeout_s = Number(min_value=SHORTEST_TIMEOUT_S, max_value=LONGEST_TIMEOUT_S, required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("queue_id" in attrs) == ("queue" in attrs) and not (self.partial and "queue" not in attrs):
            raise ValidationError({"queue_id": ["give either queue_id or queue"]})
        return attrs


class SchedulesQuery(PageQuery):
    project_id = Id(required=False)
    queue_id = Id(required=False)
    is_active = Flag(required=False, default=None)


class SchedulePauseInput(Input):
    reason = Text(max_length=500, default="", allow_blank=True)
    until = Moment(default=None, allow_null=True)


class BackfillInput(Input):
    since = Moment()
    until = Moment()
    only_missed = Bool(default=False)
    dry_run = Bool(default=False)


class FiresQuery(PageQuery):
    since = Moment(required=False)
    until = Moment(required=False)


class ScheduleOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    queue_id = serializers.UUIDField()
    name = serializers.CharField()
    cron_expression = serializers.CharField(allow_null=True)
    run_once_at = serializers.DateTimeField(allow_null=True)
    timezone = serializers.CharField()
    job_type = serializers.CharField()
    retry_policy_id = serializers.UUIDField(allow_null=True)
    gap_policy = serializers.CharField()
    repeat_policy = serializers.CharField()
    misfire_policy = serializers.CharField()
    misfire_grace_secs = serializers.IntegerField()
    misfire_cap = serializers.IntegerField()
    overlap_policy = serializers.CharField()
    starts_at = serializers.DateTimeField(allow_null=True)
    ends_at = serializers.DateTimeField(allow_null=True)
    jitter_secs = serializers.IntegerField()
    max_fires = serializers.IntegerField(allow_null=True)
    timeout_s = serializers.FloatField(allow_null=True)
    is_active = serializers.BooleanField()
    is_paused = serializers.BooleanField()
    paused_reason = serializers.CharField(allow_null=True)
    paused_by = serializers.UUIDField(source="paused_by_id", allow_null=True)
    paused_until = serializers.DateTimeField(allow_null=True)
    next_run_at = serializers.DateTimeField(allow_null=True)
    last_run_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField(allow_null=True)
    last_error_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class ScheduleDetailOutput(ScheduleOutput):
    payload_template = AnyJson(allow_null=True)


class FireOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    due_at = serializers.DateTimeField()
    outcome = serializers.CharField()
    reason = serializers.CharField(allow_null=True)
    job_id = serializers.UUIDField(allow_null=True)
    late_ms = serializers.IntegerField(allow_null=True)
    decided_at = serializers.DateTimeField(allow_null=True)
