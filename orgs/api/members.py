"""Members of an organization. Everybody in it may see them; only owners change them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from orgs.access import get_organization
from orgs.api.shapes import MemberInput, MemberOutput, MemberPatch
from orgs.audit import deed
from orgs.authentication import person_of
from orgs.members import add_member, change_role, get_member, remove_member
from orgs.models import OrganizationMember, Role
from orgs.selectors import list_members
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.paging import PageQuery
from scheduler_project.lib.rest.views import ApiView, read_body, read_page


class MembersView(ApiView):
    @describe({200: page_of(MemberOutput)}, query=PageQuery)
    def get(self, request: Request, org_id: UUID) -> Response:
        _, window = read_page(request)
        organization = get_organization(person_of(request), org_id, needs=Role.VIEWER)
        return Response(window.page(window.read(list_members(organization.pk)), _shown))

    @describe({201: MemberOutput}, body=MemberInput)
    def post(self, request: Request, org_id: UUID) -> Response:
        person, fields = person_of(request), read_body(request, MemberInput)
        organization = get_organization(person, org_id, needs=Role.OWNER)
        with deed(person, "member.add") as doing:
            member = add_member(organization, **fields)
            doing.on(member)
        return Response(_shown(member), status=201)


class MemberView(ApiView):
    @describe({200: MemberOutput}, body=MemberPatch)
    def patch(self, request: Request, org_id: UUID, member_id: UUID) -> Response:
        person, role = person_of(request), read_body(request, MemberPatch)["role"]
        member = get_member(get_organization(person, org_id, needs=Role.OWNER), member_id)
        with deed(person, "member.change_role", member):
            change_role(member, role)
        return Response(_shown(member))

    @describe({204: None})
    def delete(self, request: Request, org_id: UUID, member_id: UUID) -> Response:
        person = person_of(request)
        member = get_member(get_organization(person, org_id, needs=Role.OWNER), member_id)
        with deed(person, "member.remove", member, is_end=True):
            remove_member(member)
        return Response(status=204)


def _shown(member: OrganizationMember) -> dict[str, Any]:
    shown: dict[str, Any] = MemberOutput(member).data
    return shown
