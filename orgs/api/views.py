"""Organizations and projects. For people only: a key speaks for one project and can not make others."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.services.closing import delete_project
from orgs.access import get_organization, get_project
from orgs.api.serializers import OrganizationInput, OrganizationOutput, ProjectInput, ProjectOutput, ProjectsQuery
from orgs.authentication import person_of
from orgs.models import Role
from orgs.selectors import list_organizations, list_projects
from orgs.services import create_organization, create_project
from scheduler_project.lib.rest.paging import PageQuery, Window
from scheduler_project.lib.rest.views import ApiView, read_body, read_query


class OrganizationsView(ApiView):
    def post(self, request: Request) -> Response:
        person = person_of(request)
        organization = create_organization(**read_body(request, OrganizationInput), by=person.user_id)
        return Response(OrganizationOutput(organization).data, status=201)

    def get(self, request: Request) -> Response:
        person, window = person_of(request), Window.of(read_query(request, PageQuery))
        rows = list(list_organizations(person.user_id)[window.rows])
        return Response(window.page(rows, lambda organization: OrganizationOutput(organization).data))


class ProjectsView(ApiView):
    def post(self, request: Request) -> Response:
        person, fields = person_of(request), read_body(request, ProjectInput)
        organization = get_organization(person, fields.pop("org_id"), needs=Role.ADMIN)
        project, shown = create_project(organization, **fields, by=person.user_id)
        answer = {**ProjectOutput(project).data, "api_key": shown.key}
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})

    def get(self, request: Request) -> Response:
        person, query = person_of(request), read_query(request, ProjectsQuery)
        org_id = query.get("org_id")
        if org_id is not None:
            get_organization(person, org_id, needs=Role.VIEWER)
        window = Window.of(query)
        rows = list(list_projects(person, org_id)[window.rows])
        return Response(window.page(rows, lambda project: ProjectOutput(project).data))


class ProjectView(ApiView):
    def get(self, request: Request, project_id: UUID) -> Response:
        return Response(ProjectOutput(get_project(person_of(request), project_id, needs=Role.VIEWER)).data)

    def delete(self, request: Request, project_id: UUID) -> Response:
        delete_project(get_project(person_of(request), project_id, needs=Role.ADMIN))
        return Response(status=204)
