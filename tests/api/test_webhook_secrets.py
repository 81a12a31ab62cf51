"""Signing secrets of a project: shown once, encrypted at rest, rotated with an overlap, revoked."""

from __future__ import annotations

import base64
import json
from typing import Any

from django.db.models.functions import Now

from orgs.models import AuditEntry, WebhookSecret
from orgs.webhook_secrets import MAX_USABLE, signing_keys
from tests.personas import Api


def _create(api: Api, project: Any) -> dict[str, Any]:
    answer = api.post(f"projects/{project.pk}/webhook-secrets")
    assert answer.status_code == 201, answer.content
    body: dict[str, Any] = answer.json()
    return body


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"), validate=True)


def test_a_secret_is_shown_once_and_lies_encrypted(as_owner, project):
    answer = as_owner.post(f"projects/{project.pk}/webhook-secrets")

    body = answer.json()
    secret = body.pop("secret")
    listed = as_owner.get(f"projects/{project.pk}/webhook-secrets")
    stored = str(WebhookSecret.objects.values().get(pk=body["id"]))
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    assert 24 <= len(_key(secret)) <= 64
    assert listed.json()["items"] == [body]
    assert secret not in listed.content.decode()
    assert "sealed" not in listed.content.decode()
    assert secret not in stored
    assert secret.removeprefix("whsec_") not in stored
    assert signing_keys(project.pk) == (_key(secret),)


def test_rotating_signs_with_both_until_the_overlap_is_over(as_owner, project):
    old = _create(as_owner, project)
    path = f"projects/{project.pk}/webhook-secrets/{old['id']}"

    new = as_owner.post(f"{path}/rotate").json()

    assert signing_keys(project.pk) == (_key(new["secret"]), _key(old["secret"]))
    shown = {row["id"]: row for row in as_owner.get(f"projects/{project.pk}/webhook-secrets").json()["items"]}
    assert shown[old["id"]]["expires_at"] is not None
    assert shown[new["id"]]["expires_at"] is None
    WebhookSecret.objects.filter(pk=old["id"]).update(expires_at=Now())
    assert signing_keys(project.pk) == (_key(new["secret"]),)
    assert as_owner.post(f"{path}/rotate").status_code == 409


def test_rotating_without_overlap_ends_the_old_one_at_once(as_owner, project):
    old = _create(as_owner, project)
    new = as_owner.post(f"projects/{project.pk}/webhook-secrets/{old['id']}/rotate", {"overlap_secs": 0}).json()
    assert signing_keys(project.pk) == (_key(new["secret"]),)


def test_a_revoked_secret_signs_nothing(as_owner, project):
    made = _create(as_owner, project)
    path = f"projects/{project.pk}/webhook-secrets/{made['id']}"

    assert as_owner.delete(path).status_code == 204

    assert signing_keys(project.pk) == ()
    assert as_owner.delete(path).status_code == 409
    assert as_owner.post(f"{path}/rotate").status_code == 409


def test_their_number_is_bounded(as_owner, project):
    made = [_create(as_owner, project) for _ in range(MAX_USABLE)]
    path = f"projects/{project.pk}/webhook-secrets"

    assert as_owner.post(path).status_code == 409
    assert as_owner.post(f"{path}/{made[0]['id']}/rotate").status_code == 409
    assert len(signing_keys(project.pk)) == MAX_USABLE, "a refused rotation changes nothing"
    as_owner.delete(f"{path}/{made[0]['id']}")
    assert as_owner.post(path).status_code == 201


def test_the_audit_log_tells_of_them_without_them(as_owner, project):
    old = _create(as_owner, project)
    path = f"projects/{project.pk}/webhook-secrets/{old['id']}"
    new = as_owner.post(f"{path}/rotate").json()
    as_owner.delete(path)

    entries = list(AuditEntry.objects.filter(action__startswith="webhook_secret").order_by("id"))
    text = json.dumps([[entry.before, entry.after] for entry in entries])
    assert [entry.action for entry in entries] == [f"webhook_secret.{verb}" for verb in ("create", "rotate", "revoke")]
    assert all(entry.project_id == project.pk for entry in entries)
    assert (entries[1].after or {})["new_secret_id"] == new["id"]
    for secret in (old["secret"], new["secret"]):
        assert secret[10:] not in text
    assert "sealed" not in text


def test_another_projects_secret_looks_unknown(as_owner, as_outsider, project):
    made = _create(as_owner, project)
    assert as_outsider.delete(f"projects/{project.pk}/webhook-secrets/{made['id']}").status_code == 404
    assert signing_keys(project.pk)
