"""Totals for a dashboard."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.answers import SystemOutput
from jobs.selectors.system import system_totals
from orgs.authentication import person_of
from scheduler_project.lib.rest.describe import describe
from scheduler_project.lib.rest.fields import Input
from scheduler_project.lib.rest.views import ApiView, read_query


class NoQuery(Input):
    """A query string without parameters."""


class SystemView(ApiView):
    @describe({200: SystemOutput}, query=NoQuery)
    def get(self, request: Request) -> Response:
        read_query(request, NoQuery)
        return Response(system_totals(person_of(request)))
