"""Signing secrets of a project: people make, rotate and revoke them; each is shown once, when it is made."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from orgs.access import get_project
from orgs.api.shapes import NewSecretOutput, SecretOutput, SecretRotateInput
from orgs.audit import deed
from orgs.authentication import person_of
from orgs.models import Role, WebhookSecret
from orgs.webhook_secrets import ShownSecret, create_secret, get_secret, list_secrets, revoke_secret, rotate_secret
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.paging import PageQuery
from scheduler_project.lib.rest.views import ApiView, read_body, read_page


class WebhookSecretsView(ApiView):
    @describe({200: page_of(SecretOutput)}, query=PageQuery)
    def get(self, request: Request, project_id: UUID) -> Response:
        _, window = read_page(request)
        project = get_project(person_of(request), project_id, needs=Role.ADMIN)
        return Response(window.page(window.read(list_secrets(project.pk)), _shown))

    @describe({201: NewSecretOutput})
    def post(self, request: Request, project_id: UUID) -> Response:
        person = person_of(request)
        project = get_project(person, project_id, needs=Role.ADMIN)
        with deed(person, "webhook_secret.create") as doing:
            made = create_secret(project, by=person.user_id)
            doing.on(made.row)
        return _once(made)


class WebhookSecretView(ApiView):
    @describe({204: None})
    def delete(self, request: Request, project_id: UUID, secret_id: UUID) -> Response:
        person = person_of(request)
        secret = get_secret(get_project(person, project_id, needs=Role.ADMIN).pk, secret_id)
        with deed(person, "webhook_secret.revoke", secret):
            revoke_secret(secret.pk)
            secret.refresh_from_db(fields=["revoked_at"])
        return Response(status=204)


class RotateSecretView(ApiView):
    @describe({201: NewSecretOutput}, body=SecretRotateInput)
    def post(self, request: Request, project_id: UUID, secret_id: UUID) -> Response:
        person, overlap_secs = person_of(request), read_body(request, SecretRotateInput)["overlap_secs"]
        secret = get_secret(get_project(person, project_id, needs=Role.ADMIN).pk, secret_id)
        with deed(person, "webhook_secret.rotate", secret) as doing:
            made = rotate_secret(secret, overlap_secs=overlap_secs, by=person.user_id)
            secret.refresh_from_db(fields=["expires_at"])
            doing.says(new_secret_id=made.row.pk)
        return _once(made)


def _once(made: ShownSecret) -> Response:
    made.row.refresh_from_db()
    return Response({**_shown(made.row), "secret": made.secret}, status=201, headers={"Cache-Control": "no-store"})


def _shown(secret: WebhookSecret) -> dict[str, Any]:
    shown: dict[str, Any] = SecretOutput(secret).data
    return shown
