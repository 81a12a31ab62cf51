"""The audit log of an organization, for its admins."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from orgs.access import get_organization
from orgs.api.shapes import AuditOutput, AuditQuery
from orgs.authentication import person_of
from orgs.models import Role
from orgs.selectors import list_audit
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.views import ApiView, read_page


class AuditView(ApiView):
    @describe({200: page_of(AuditOutput)}, query=AuditQuery)
    def get(self, request: Request) -> Response:
        query, window = read_page(request, AuditQuery)
        organization = get_organization(person_of(request), query["org_id"], needs=Role.ADMIN)
        rows = list_audit(organization.pk, query.get("target_type"), query.get("target_id"))
        return Response(window.page(window.read(rows), AuditOutput().to_representation))
