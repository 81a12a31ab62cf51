"""Shapes of answers that are put together by their views."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from jobs.states import JobStatus
from scheduler_project.lib.rest.describe import ErrorDetailOutput, page_of
from scheduler_project.lib.rest.fields import AnyJson


class JobStatusOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=JobStatus.values)


class CancelledOutput(JobStatusOutput):
    cancel_requested = serializers.BooleanField()


class ReasonOutput(serializers.Serializer[Any]):
    """Besides these, what goes with the code."""

    code = serializers.CharField()
    message = serializers.CharField()


class ExplainOutput(serializers.Serializer[Any]):
    job_id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=JobStatus.values)
    reasons = ReasonOutput(many=True)


class OutcomeOutput(serializers.Serializer[Any]):
    """A job that was submitted, or what is wrong with it."""

    index = serializers.IntegerField()
    status = serializers.IntegerField(help_text="As the HTTP status it would have had alone.")
    id = serializers.UUIDField(required=False)
    job_status = serializers.ChoiceField(choices=JobStatus.values, required=False)
    run_at = serializers.DateTimeField(required=False)
    is_new = serializers.BooleanField(required=False)
    error = serializers.CharField(required=False)
    message = serializers.CharField(required=False)
    details = ErrorDetailOutput(many=True, required=False)


class OutcomesOutput(serializers.Serializer[Any]):
    results = OutcomeOutput(many=True)


class BulkOutput(OutcomesOutput):
    submitted = serializers.IntegerField()
    replayed = serializers.IntegerField()
    failed = serializers.IntegerField()


class MatchedOutput(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    is_capped = serializers.BooleanField()
    sample = AnyJson()


class DryRunOutput(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    matched = MatchedOutput()


class TriggeredOutput(serializers.Serializer[Any]):
    job_id = serializers.UUIDField()


class BackfillOutput(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    count = serializers.IntegerField()
    due_times = serializers.ListField(child=serializers.DateTimeField())
    job_ids = serializers.ListField(child=serializers.UUIDField())


class ActiveWorkersOutput(serializers.Serializer[Any]):
    active = serializers.IntegerField()
    draining = serializers.IntegerField()


class CountsOutput(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    paused = serializers.IntegerField()


class RatesOutput(serializers.Serializer[Any]):
    completed = serializers.IntegerField()
    failed = serializers.IntegerField()
    completed_per_s = serializers.FloatField()


class SystemOutput(serializers.Serializer[Any]):
    jobs = serializers.DictField(child=serializers.IntegerField())
    jobs_counted_up_to = serializers.IntegerField()
    dead_letters = serializers.IntegerField()
    queues = CountsOutput()
    queue_depth = AnyJson()
    workers = ActiveWorkersOutput()
    last_minute = RatesOutput()


class WindowOutput(serializers.Serializer[Any]):
    # "from" is a word of Python's own.
    vars()["from"] = serializers.DateTimeField()
    to = serializers.DateTimeField(allow_null=True)
    is_default = serializers.BooleanField()


def fires_page(fire: type[serializers.Serializer[Any]]) -> type[serializers.BaseSerializer[Any]]:
    """A page of due times, with what they amount to."""
    more = {
        "window": WindowOutput(),
        "counts": serializers.DictField(child=serializers.IntegerField()),
    }
    return type("FirePage", (page_of(fire),), more)


class BatchNumbersOutput(serializers.Serializer[Any]):
    total_jobs = serializers.IntegerField()
    completed_jobs = serializers.IntegerField()
    failed_jobs = serializers.IntegerField()
    cancelled_jobs = serializers.IntegerField()
    pending_jobs = serializers.IntegerField()
    progress = serializers.FloatField(allow_null=True)
