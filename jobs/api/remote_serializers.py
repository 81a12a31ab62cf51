"""Shapes of what workers over HTTP send and get. In a claim's answer ``jobs`` comes last, and in a job its payload:
a worker without a JSON parser cuts them out (docs/examples/worker.sh).
"""

from __future__ import annotations

from typing import Any

from django.core.validators import ProhibitNullCharactersValidator
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from jobs.decisions import MAX_SNOOZE_S
from jobs.new_job import MAX_TYPE_CHARS
from jobs.services.remote.endings import ALREADY_APPLIED, APPLIED, INVALID, LEASE_LOST, OUTCOMES
from jobs.states import JobStatus, LogLevel
from scheduler_project.lib.rest.fields import AnyJson, Bool, Choice, Id, Input, Number, Text, Whole
from scheduler_project.lib.rest.parking import MAX_WAIT_MS

MAX_JOBS, MAX_QUEUES, MAX_TYPES = 100, 50, 200
MAX_LEASES = MAX_RESULTS = 1_000
MAX_LINES = 200
#: Longer texts than are kept: they are cut rather than refused, for a worker can not choose what its errors say.
MAX_FREE_CHARS = 200_000
MAX_INT = 2_147_483_647
LONGEST_AGO_MS = 86_400_000


class FreeText(Text):
    """What somebody else's program said: characters that can not be stored are replaced later, not refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_FREE_CHARS, allow_blank=True, trim_whitespace=False, **options)
        refusing = (ProhibitNullCharactersValidator, ProhibitSurrogateCharactersValidator)
        self.validators = [check for check in self.validators if not isinstance(check, refusing)]


class InfoInput(Input):
    name = Text(max_length=200, default="remote")
    pid = Whole(min_value=0, max_value=MAX_INT, default=0)
    version = Text(max_length=40, default="", allow_blank=True)
    slots = Whole(min_value=1, max_value=10_000, default=1)


class ClaimInput(Input):
    worker_id = Id()
    claim_id = Id(default=None, allow_null=True)
    queues = serializers.ListField(
        child=Text(max_length=300), min_length=1, max_length=MAX_QUEUES, default=None, allow_null=True
    )
    types = serializers.ListField(
        child=Text(max_length=MAX_TYPE_CHARS), min_length=1, max_length=MAX_TYPES, default=None, allow_null=True
    )
    max_jobs = Whole(min_value=1, max_value=MAX_JOBS, default=1)
    wait_ms = Whole(min_value=0, max_value=MAX_WAIT_MS, default=0)
    info = InfoInput(required=False)


class LineInput(Input):
    message = FreeText()
    level = Choice(choices=LogLevel.values, default=LogLevel.INFO.value)
    ago_ms = Number(min_value=0, max_value=LONGEST_AGO_MS, default=0.0)


class LeaseInput(Input):
    id = Id()
    lease_token = Id()
    progress_percent = Whole(min_value=0, max_value=100, default=None, allow_null=True)
    progress_note = FreeText(default=None, allow_null=True)
    logs = serializers.ListField(child=LineInput(), max_length=MAX_LINES, default=list)


class StatsInput(Input):
    cpu_percent = Number(min_value=0, max_value=1e6, default=0.0)
    memory_mb = Number(min_value=0, max_value=1e9, default=0.0)


class HeartbeatInput(Input):
    worker_id = Id()
    state = Choice(choices=["running", "draining", "stopped"], default="running")
    leases = serializers.ListField(child=LeaseInput(), max_length=MAX_LEASES, default=list)
    stats = StatsInput(required=False)


class ErrorInput(Input):
    type = Text(max_length=200, default="", allow_blank=True)
    message = FreeText(default="")
    stack = FreeText(default=None, allow_null=True)
    retryable = Bool(default=True)
    retry_after_s = Number(min_value=0, max_value=MAX_SNOOZE_S, default=None, allow_null=True)


class ResultInput(Input):
    id = Id()
    lease_token = Id()
    outcome = Choice(choices=list(OUTCOMES))
    result = AnyJson(default=None, allow_null=True)
    error = ErrorInput(required=False)
    retry_after_s = Number(min_value=0, max_value=MAX_SNOOZE_S, default=None, allow_null=True)
    ran_ms = Number(min_value=0, max_value=1e12, default=None, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        outcome = attrs["outcome"]
        if "error" in attrs and outcome not in ("failed", "cancelled"):
            raise ValidationError({"error": [f"does not go with the outcome {outcome}"]})
        if attrs["result"] is not None and outcome != "completed":
            raise ValidationError({"result": [f"does not go with the outcome {outcome}"]})
        if (attrs["retry_after_s"] is None) == (outcome == "snoozed"):
            raise ValidationError({"retry_after_s": ["is needed for the outcome snoozed, and only there"]})
        return attrs


class FinishInput(Input):
    worker_id = Id()
    results = serializers.ListField(child=ResultInput(), min_length=1, max_length=MAX_RESULTS)


class DrainInput(Input):
    pass


# -- answers ----------------------------------------------------------------------------------------------------
class HandedOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    lease_token = serializers.UUIDField()
    job_type = serializers.CharField()
    queue_id = serializers.UUIDField()
    queue = serializers.CharField()
    attempt = serializers.IntegerField()
    fencing_number = serializers.IntegerField()
    priority = serializers.IntegerField()
    trace_id = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    lease_expires_in_ms = serializers.IntegerField()
    payload = AnyJson(allow_null=True)


class ClaimOutput(serializers.Serializer[Any]):
    worker_id = serializers.UUIDField(help_text="The worker as GET /api/workers shows it.")
    directive = serializers.ChoiceField(choices=["run", "drain"])
    heartbeat_every_ms = serializers.IntegerField()
    retry_after_ms = serializers.IntegerField()
    jobs = HandedOutput(many=True)


class LeaseOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=["ok", "cancel_requested", "lost"])
    lease_expires_in_ms = serializers.IntegerField()


class HeartbeatOutput(serializers.Serializer[Any]):
    directive = serializers.ChoiceField(choices=["run", "drain"])
    heartbeat_every_ms = serializers.IntegerField()
    leases = LeaseOutput(many=True)


class ResultReceiptOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=[APPLIED, ALREADY_APPLIED, LEASE_LOST, INVALID])
    job_status = serializers.ChoiceField(choices=JobStatus.values, allow_null=True)
    message = serializers.CharField(allow_null=True)


class FinishOutput(serializers.Serializer[Any]):
    results = ResultReceiptOutput(many=True)


class DrainOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    directive = serializers.ChoiceField(choices=["drain"])
