"""Shapes of dead letters."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from dlq.models import DeadLetter
from scheduler_project.lib.rest.fields import AnyJson, Choice, Flag, Id, Input
from scheduler_project.lib.rest.paging import PageQuery


class LettersQuery(PageQuery):
    queue_id = Id(required=False)
    # No default: a boolean field would take "not given" for false.
    resolved = Flag(required=False, default=None)


class ResolveInput(Input):
    action = Choice(choices=DeadLetter.Resolution.values)


class LetterOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    job_id = serializers.UUIDField()
    queue_id = serializers.UUIDField()
    job_type = serializers.CharField()
    failure_reason = serializers.CharField()
    attempt_count = serializers.IntegerField()
    last_error = serializers.CharField()
    moved_at = serializers.DateTimeField()
    resolved = serializers.BooleanField()
    resolved_by = serializers.UUIDField(source="resolved_by_id", allow_null=True)
    resolved_at = serializers.DateTimeField(allow_null=True)
    resolution_action = serializers.CharField(allow_null=True)


class LetterDetailOutput(LetterOutput):
    payload_snapshot = AnyJson(allow_null=True)


class ResolvedOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    resolution_action = serializers.ChoiceField(choices=DeadLetter.Resolution.values)
    job_id = serializers.UUIDField(allow_null=True)
