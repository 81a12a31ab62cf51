"""When a cron expression would fire, before a schedule is made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.cron import CronError, parse, zone_of
from jobs.cron_notes import MOST, preview, sentence, warnings
from jobs.models import ScheduledJob
from scheduler_project.lib.rest.describe import describe
from scheduler_project.lib.rest.fields import Choice, Input, Moment, Text, Whole
from scheduler_project.lib.rest.views import ApiView, read_body
from scheduler_project.lib.sql import database_now
from scheduler_project.lib.tzdata import tzdata_version


class PreviewInput(Input):
    cron_expression = Text(max_length=120)
    timezone = Text(max_length=64, default="UTC")
    viewer_timezone = Text(max_length=64, default="UTC")
    after = Moment(default=None, allow_null=True)
    count = Whole(min_value=1, max_value=MOST, default=10)
    gap_policy = Choice(choices=ScheduledJob.GapPolicy.values, default="run_after")
    repeat_policy = Choice(choices=ScheduledJob.RepeatPolicy.values, default="first")


class PreviewFireOutput(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    local = serializers.CharField()
    viewer = serializers.CharField()
    note = serializers.CharField(allow_blank=True)


class PreviewOutput(serializers.Serializer[Any]):
    sentence = serializers.CharField()
    warnings = serializers.ListField(child=serializers.CharField())
    tzdata_version = serializers.CharField()
    fires = PreviewFireOutput(many=True)


class PreviewView(ApiView):
    @describe({200: PreviewOutput}, body=PreviewInput)
    def post(self, request: Request) -> Response:
        fields = read_body(request, PreviewInput)
        errors: dict[str, list[str]] = {}
        found: dict[str, Any] = {}
        readers: list[tuple[str, Callable[[str], Any]]] = [
            ("cron_expression", parse),
            ("timezone", zone_of),
            ("viewer_timezone", zone_of),
        ]
        for name, read in readers:
            try:
                found[name] = read(fields[name])
            except CronError as error:
                errors[name] = [str(error)]
        if errors:
            raise ValidationError(errors)
        cron = found["cron_expression"]
        rows = preview(
            cron,
            found["timezone"],
            fields["after"] or database_now(),
            count=fields["count"],
            viewer=found["viewer_timezone"],
            changes=(fields["gap_policy"], fields["repeat_policy"]),
        )
        fires = [
            {"at": row.at, "local": row.local.isoformat(), "viewer": row.viewer.isoformat(), "note": row.note}
            for row in rows
        ]
        shown = {"sentence": sentence(cron), "warnings": warnings(cron), "tzdata_version": tzdata_version()}
        return Response(PreviewOutput({**shown, "fires": fires}).data)
