"""How the queues are, for autoscalers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.selectors.queue_stats import queues_now
from orgs.access import project_ids
from orgs.authentication import actor_of
from scheduler_project.lib.errors import NotFound
from scheduler_project.lib.rest.describe import describe
from scheduler_project.lib.rest.fields import Input
from scheduler_project.lib.rest.rows import row_of
from scheduler_project.lib.rest.views import ApiView, read_query


class QueueStatsQuery(Input):
    """All queues, or one project's."""

    project_id = serializers.UUIDField(required=False)


class QueueNowOutput(serializers.Serializer[Any]):
    """One queue as it was at ``as_of``; null: not counted yet."""

    queue_id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    name = serializers.CharField()
    path = serializers.CharField()
    is_paused = serializers.BooleanField()
    ready = serializers.IntegerField()
    scheduled = serializers.IntegerField()
    claimed = serializers.IntegerField()
    running = serializers.IntegerField()
    dead_letters = serializers.IntegerField()
    is_capped = serializers.BooleanField(help_text="A count has reached its ceiling: read it as 'or more'.")
    oldest_age_s = serializers.FloatField(allow_null=True)
    limit = serializers.IntegerField(allow_null=True)
    capacity = serializers.IntegerField(allow_null=True)
    arrivals_per_s = serializers.FloatField()
    completions_per_s = serializers.FloatField()
    as_of = serializers.DateTimeField(allow_null=True)


class QueueStatsOutput(serializers.Serializer[Any]):
    queues = QueueNowOutput(many=True)


_show = row_of(QueueNowOutput())


class QueueStatsView(ApiView):
    @describe({200: QueueStatsOutput}, query=QueueStatsQuery)
    def get(self, request: Request) -> Response:
        wanted = read_query(request, QueueStatsQuery).get("project_id")
        seen = project_ids(actor_of(request))
        if wanted is not None and wanted not in seen:
            raise NotFound("There is no such project.")
        queues = queues_now(seen if wanted is None else [wanted])
        return Response({"queues": [_show(queue) for queue in queues]})
