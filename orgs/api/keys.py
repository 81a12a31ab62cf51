"""API keys of a project: people make, rotate and revoke them; each is shown once, when it is made."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from orgs.access import get_project
from orgs.api.shapes import KeyInput, KeyOutput, NewKeyOutput, RotateInput
from orgs.audit import deed
from orgs.authentication import person_of
from orgs.models import ApiKey, Role
from orgs.selectors import get_api_key, list_api_keys
from orgs.services import ShownKey, create_api_key, revoke_api_key, rotate_api_key
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.paging import PageQuery
from scheduler_project.lib.rest.views import ApiView, read_body, read_page


class KeysView(ApiView):
    @describe({200: page_of(KeyOutput)}, query=PageQuery)
    def get(self, request: Request, project_id: UUID) -> Response:
        _, window = read_page(request)
        project = get_project(person_of(request), project_id, needs=Role.ADMIN)
        return Response(window.page(window.read(list_api_keys(project.pk)), _shown))

    @describe({201: NewKeyOutput}, body=KeyInput)
    def post(self, request: Request, project_id: UUID) -> Response:
        person, fields = person_of(request), read_body(request, KeyInput)
        project = get_project(person, project_id, needs=Role.ADMIN)
        with deed(person, "api_key.create") as doing:
            made = create_api_key(project, **fields, by=person.user_id)
            doing.on(made.row)
        return _once(made)


class KeyView(ApiView):
    @describe({204: None})
    def delete(self, request: Request, project_id: UUID, key_id: UUID) -> Response:
        person = person_of(request)
        key = get_api_key(get_project(person, project_id, needs=Role.ADMIN).pk, key_id)
        with deed(person, "api_key.revoke", key):
            revoke_api_key(key.pk)
            key.refresh_from_db()
        return Response(status=204)


class RotateView(ApiView):
    @describe({201: NewKeyOutput}, body=RotateInput)
    def post(self, request: Request, project_id: UUID, key_id: UUID) -> Response:
        person, overlap_secs = person_of(request), read_body(request, RotateInput)["overlap_secs"]
        key = get_api_key(get_project(person, project_id, needs=Role.ADMIN).pk, key_id)
        with deed(person, "api_key.rotate", key) as doing:
            made = rotate_api_key(key, overlap_secs=overlap_secs, by=person.user_id)
            key.refresh_from_db()
            doing.says(new_key_id=made.row.pk)
        return _once(made)


def _once(made: ShownKey) -> Response:
    made.row.refresh_from_db()
    return Response({**_shown(made.row), "api_key": made.key}, status=201, headers={"Cache-Control": "no-store"})


def _shown(key: ApiKey) -> dict[str, Any]:
    shown: dict[str, Any] = KeyOutput(key).data
    return shown
