"""Circuit breakers: list, look at, close by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.lifecycle.circuits import reset
from jobs.models import CircuitBreaker
from jobs.selectors.breakers import get_breaker, list_breakers
from orgs.access import get_project
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.fields import Choice
from scheduler_project.lib.rest.paging import OfProjectQuery
from scheduler_project.lib.rest.views import ApiView, read_page


class BreakersQuery(OfProjectQuery):
    state = Choice(choices=CircuitBreaker.State.values, required=False)


class BreakerOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    name = serializers.CharField()
    state = serializers.CharField()
    recent = serializers.CharField(allow_blank=True)
    opened_at = serializers.DateTimeField(allow_null=True)
    allowance = serializers.IntegerField(allow_null=True)
    let_through = serializers.ListField(child=serializers.UUIDField())
    updated_at = serializers.DateTimeField()


class BreakersView(ApiView):
    @describe({200: page_of(BreakerOutput)}, query=BreakersQuery)
    def get(self, request: Request) -> Response:
        query, window = read_page(request, BreakersQuery)
        actor, project_id = actor_of(request), query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        rows = window.read(list_breakers(actor, project_id, query.get("state")))
        return Response(window.page(rows, _shown))


class BreakerView(ApiView):
    @describe({200: BreakerOutput})
    def get(self, request: Request, breaker_id: UUID) -> Response:
        return Response(_shown(get_breaker(actor_of(request), breaker_id, needs=Role.VIEWER)))


class ResetView(ApiView):
    @describe({200: BreakerOutput})
    def post(self, request: Request, breaker_id: UUID) -> Response:
        actor = actor_of(request)
        get_breaker(actor, breaker_id, needs=Role.ADMIN)
        with transaction.atomic():
            breaker = get_breaker(actor, breaker_id, needs=Role.ADMIN, is_locked=True)
            with deed(actor, "circuit_breaker.reset", breaker):
                reset(breaker)
        return Response(_shown(breaker))


def _shown(breaker: CircuitBreaker) -> dict[str, Any]:
    return dict(BreakerOutput(breaker).data)
