"""Organizations and projects. For people only: a key speaks for one project and can not make others."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.services.closing import delete_project
from orgs.access import get_organization, get_project
from orgs.api.serializers import (
    EgressPatch,
    NewProjectOutput,
    OrganizationDetail,
    OrganizationInput,
    OrganizationOutput,
    ProjectInput,
    ProjectOutput,
    ProjectsQuery,
)
from orgs.audit import deed
from orgs.authentication import person_of
from orgs.egress import change_egress
from orgs.models import Role
from orgs.selectors import list_organizations, list_projects
from orgs.services import create_organization, create_project
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.paging import PageQuery
from scheduler_project.lib.rest.views import ApiView, read_body, read_page, read_patch


class OrganizationsView(ApiView):
    @describe({201: OrganizationOutput}, body=OrganizationInput)
    def post(self, request: Request) -> Response:
        person = person_of(request)
        fields = read_body(request, OrganizationInput)
        with deed(person, "organization.create") as doing:
            organization = create_organization(**fields, by=person.user_id)
            doing.on(organization)
        return Response(OrganizationOutput(organization).data, status=201)

    @describe({200: page_of(OrganizationOutput)}, query=PageQuery)
    def get(self, request: Request) -> Response:
        person, (_, window) = person_of(request), read_page(request)
        rows = window.read(list_organizations(person.user_id))
        return Response(window.page(rows, OrganizationOutput().to_representation))


class OrganizationView(ApiView):
    @describe({200: OrganizationDetail})
    def get(self, request: Request, org_id: UUID) -> Response:
        return Response(OrganizationDetail(get_organization(person_of(request), org_id, needs=Role.ADMIN)).data)

    @describe({200: OrganizationDetail}, body=EgressPatch)
    def patch(self, request: Request, org_id: UUID) -> Response:
        person, fields = person_of(request), read_patch(request, EgressPatch)
        organization = get_organization(person, org_id, needs=Role.ADMIN)
        with deed(person, "organization.change_egress", organization):
            change_egress(organization, **fields)
        return Response(OrganizationDetail(organization).data)


class ProjectsView(ApiView):
    @describe({201: NewProjectOutput}, body=ProjectInput)
    def post(self, request: Request) -> Response:
        person, fields = person_of(request), read_body(request, ProjectInput)
        organization = get_organization(person, fields.pop("org_id"), needs=Role.ADMIN)
        with deed(person, "project.create") as doing:
            project, shown = create_project(organization, **fields, by=person.user_id)
            doing.on(project)
        answer = {**ProjectOutput(project).data, "api_key": shown.key}
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})

    @describe({200: page_of(ProjectOutput)}, query=ProjectsQuery)
    def get(self, request: Request) -> Response:
        person, (query, window) = person_of(request), read_page(request, ProjectsQuery)
        org_id = query.get("org_id")
        if org_id is not None:
            get_organization(person, org_id, needs=Role.VIEWER)
        rows = window.read(list_projects(person, org_id))
        return Response(window.page(rows, ProjectOutput().to_representation))


class ProjectView(ApiView):
    @describe({200: ProjectOutput})
    def get(self, request: Request, project_id: UUID) -> Response:
        return Response(ProjectOutput(get_project(person_of(request), project_id, needs=Role.VIEWER)).data)

    @describe({204: None})
    def delete(self, request: Request, project_id: UUID) -> Response:
        person = person_of(request)
        project = get_project(person, project_id, needs=Role.ADMIN)
        with deed(person, "project.delete", project, is_end=True):
            delete_project(project)
        return Response(status=204)
