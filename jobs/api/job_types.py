"""The job types that this server knows a handler of, and what their payloads must be like."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.handlers.registry import Handler, list_handlers
from orgs.authentication import actor_of
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.fields import AnyJson
from scheduler_project.lib.rest.paging import Key, PageQuery
from scheduler_project.lib.rest.views import ApiView, read_page

BY_NAME = (Key("job_type", "text", is_descending=False),)


class JobTypeOutput(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="A star at its end stands for any rest.")
    description = serializers.CharField(allow_blank=True)
    schema = AnyJson(allow_null=True, help_text="JSON Schema 2020-12 of the payload; null: any payload will do.")
    isolation = serializers.CharField(help_text="Where it runs: thread, async or process.")
    timeout_s = serializers.FloatField(allow_null=True)
    secret_fields = serializers.ListField(child=serializers.CharField())


class JobTypesView(ApiView):
    @describe({200: page_of(JobTypeOutput)}, query=PageQuery)
    def get(self, request: Request) -> Response:
        (_, window), _ = read_page(request, PageQuery, BY_NAME), actor_of(request)
        found = [known for known in list_handlers() if not known.is_internal]
        if window.after is not None:
            found = [known for known in found if known.job_type > window.after[0]]
        return Response(window.page(found[window.rows], _shown))


def _shown(known: Handler) -> dict[str, Any]:
    return {
        "name": known.job_type,
        "description": known.description,
        "schema": known.payload.schema,
        "isolation": known.isolation,
        "timeout_s": known.timeout_s,
        "secret_fields": [".".join(path) for path in known.payload.secrets],
    }
