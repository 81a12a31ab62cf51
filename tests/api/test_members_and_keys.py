"""Members of an organization, API keys of a project, passwords and logging out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from accounts.models import RefreshFamily, User
from orgs.models import ApiKey, OrganizationMember
from tests.personas import Api, field_of, make_user

PASSWORD = "correct horse battery"


# -- members --------------------------------------------------------------------------------------------------
def test_an_owner_adds_changes_and_removes(as_owner, organization):
    user = make_user(full_name="Nina")
    path = f"organizations/{organization.pk}/members"

    added = as_owner.post(path, {"email": user.email.upper(), "role": "viewer"})
    member = added.json()
    changed = as_owner.send("patch", f"{path}/{member['id']}", '{"role": "admin"}')
    names = [row["email"] for row in as_owner.get(path).json()["items"]]
    removed = as_owner.delete(f"{path}/{member['id']}")

    assert (added.status_code, member["role"], member["full_name"]) == (201, "viewer", "Nina")
    assert changed.json()["role"] == "admin"
    assert user.email in names
    assert removed.status_code == 204
    assert Api(user).get("organizations").json()["items"] == []


def test_strangers_and_members_can_not_be_added(as_owner, organization, member):
    path = f"organizations/{organization.pk}/members"

    unknown = as_owner.post(path, {"email": "nobody@example.com", "role": "viewer"})
    twice = as_owner.post(path, {"email": member.email, "role": "viewer"})
    odd = as_owner.post(path, {"email": make_user().email, "role": "king"})

    assert (unknown.status_code, field_of(unknown)) == (400, "email")
    assert (twice.status_code, field_of(twice)) == (409, "email")
    assert (odd.status_code, field_of(odd)) == (400, "role")


def test_the_last_owner_stays(as_owner, owner, organization, manager):
    path = f"organizations/{organization.pk}/members"
    mine = owner.memberships.get().pk

    assert as_owner.delete(f"{path}/{mine}").status_code == 409
    assert as_owner.send("patch", f"{path}/{mine}", '{"role": "admin"}').status_code == 409
    as_owner.send("patch", f"{path}/{manager.memberships.get().pk}", '{"role": "owner"}')
    assert as_owner.send("patch", f"{path}/{mine}", '{"role": "admin"}').status_code == 200


def test_members_of_other_organizations_look_unknown(as_owner, organization, outsider):
    foreign = outsider.memberships.get().pk

    answer = as_owner.delete(f"organizations/{organization.pk}/members/{foreign}")

    assert answer.status_code == 404
    assert OrganizationMember.objects.filter(pk=foreign).exists()


# -- keys -----------------------------------------------------------------------------------------------------
def _key(as_owner, project, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = as_owner.post(f"projects/{project.pk}/api-keys", {"name": "k", **fields}).json()
    return body


def test_a_key_is_shown_once_and_only_its_hash_is_kept(as_owner, project):
    answer = as_owner.post(f"projects/{project.pk}/api-keys", {"name": "ci", "scope": "read"})

    body = answer.json()
    key = body.pop("api_key")
    listed = as_owner.get(f"projects/{project.pk}/api-keys")
    assert (answer.status_code, answer["Cache-Control"], body["scope"]) == (201, "no-store", "read")
    assert listed.json()["items"] == [body]
    assert key.encode() not in listed.content
    assert b"hash" not in listed.content
    assert key not in str(ApiKey.objects.filter(pk=body["id"]).values().get())


@pytest.mark.parametrize(
    ("scope", "statuses"),
    [("read", (200, 403, 403)), ("submit", (200, 201, 403)), ("manage", (200, 201, 200)), ("work", (403, 403, 403))],
)
def test_scopes_are_enforced(as_owner, project, queue, scope, statuses):
    api = Api(key=_key(as_owner, project, scope=scope)["api_key"])

    read = api.get(f"queues/{queue.pk}")
    submitted = api.post("jobs", {"queue_id": str(queue.pk), "job_type": "noop"})
    managed = api.post(f"queues/{queue.pk}/pause")

    assert (read.status_code, submitted.status_code, managed.status_code) == statuses


def test_use_is_seen(as_owner, project):
    made = _key(as_owner, project)

    Api(key=made["api_key"]).get("jobs")

    [shown] = as_owner.get(f"projects/{project.pk}/api-keys").json()["items"]
    assert made["last_used_at"] is None
    assert shown["last_used_at"] is not None


def test_rotating_keeps_the_old_key_for_the_overlap(as_owner, project):
    old = _key(as_owner, project, scope="submit")
    path = f"projects/{project.pk}/api-keys/{old['id']}"

    new = as_owner.post(f"{path}/rotate", {"overlap_secs": 3600})

    assert (new.status_code, new.json()["scope"], new.json()["name"]) == (201, "submit", "k")
    for key in (old["api_key"], new.json()["api_key"]):
        assert Api(key=key).get("jobs").status_code == 200
    assert as_owner.post(f"{path}/rotate").status_code == 201
    assert Api(key=old["api_key"]).get("jobs").status_code == 401
    assert as_owner.post(f"{path}/rotate").status_code == 409


def test_an_overlap_never_makes_a_key_live_longer(as_owner, project):
    old = _key(as_owner, project)
    ApiKey.objects.filter(pk=old["id"]).update(expires_at=Now() + timedelta(seconds=60))
    before = ApiKey.objects.get(pk=old["id"]).expires_at

    as_owner.post(f"projects/{project.pk}/api-keys/{old['id']}/rotate", {"overlap_secs": 3600})

    assert ApiKey.objects.get(pk=old["id"]).expires_at == before


def test_a_revoked_key_is_out_at_once(as_owner, project):
    made = _key(as_owner, project)
    path = f"projects/{project.pk}/api-keys/{made['id']}"

    assert as_owner.delete(path).status_code == 204
    assert Api(key=made["api_key"]).get("jobs").status_code == 401
    assert as_owner.delete(path).status_code == 409


def test_keys_of_other_projects_look_unknown(as_owner, as_outsider, organization, project):
    made = _key(as_owner, project)
    other = as_owner.post("projects", {"org_id": str(organization.pk), "name": "P"}).json()["id"]

    assert as_owner.delete(f"projects/{other}/api-keys/{made['id']}").status_code == 404
    assert Api(key=made["api_key"]).get("jobs").status_code == 200


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"scope": "root"}, "scope"), ({"name": ""}, "name"), ({"expires_at": "tomorrow"}, "expires_at"), ({"x": 1}, "x")],
)
def test_bad_keys_name_the_field(as_owner, project, fields, field):
    answer = as_owner.post(f"projects/{project.pk}/api-keys", {"name": "k", **fields})

    assert (answer.status_code, field_of(answer)) == (400, field)


# -- passwords and logging out --------------------------------------------------------------------------------
@pytest.fixture
def tokens(anonymous) -> dict[str, Any]:
    body: dict[str, Any] = anonymous.post("auth/register", {"email": "ada@example.com", "password": PASSWORD}).json()
    return body


def test_a_new_password_ends_every_token_and_gives_new_ones(anonymous, tokens):
    ada = Api(Authorization=f"Bearer {tokens['access']}")

    answer = ada.post("auth/password", {"old_password": PASSWORD, "new_password": "another good one"})

    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert ada.get("organizations").status_code == 401
    assert anonymous.post("auth/refresh", {"refresh": tokens["refresh"]}).status_code == 401
    assert Api(Authorization=f"Bearer {answer.json()['access']}").get("organizations").status_code == 200
    assert anonymous.post("auth/refresh", {"refresh": answer.json()["refresh"]}).status_code == 200


def test_a_wrong_old_or_a_weak_new_password_changes_nothing(tokens):
    ada = Api(Authorization=f"Bearer {tokens['access']}")

    wrong = ada.post("auth/password", {"old_password": "x", "new_password": "another good one"})
    weak = ada.post("auth/password", {"old_password": PASSWORD, "new_password": "1234"})

    assert (wrong.status_code, field_of(wrong)) == (400, "old_password")
    assert (weak.status_code, field_of(weak)) == (400, "new_password")
    assert User.objects.get().check_password(PASSWORD)
    assert ada.get("organizations").status_code == 200


def test_logging_out_kills_this_log_in_and_no_other(anonymous, tokens):
    other = anonymous.post("auth/login", {"email": "ada@example.com", "password": PASSWORD}).json()

    assert anonymous.post("auth/logout", {"refresh": tokens["refresh"]}).status_code == 204
    assert anonymous.post("auth/logout", {"refresh": tokens["refresh"]}).status_code == 204
    assert anonymous.post("auth/refresh", {"refresh": tokens["refresh"]}).status_code == 401
    assert anonymous.post("auth/refresh", {"refresh": other["refresh"]}).status_code == 200
    assert RefreshFamily.objects.filter(revoked_at=None).count() == 1


@pytest.mark.parametrize("text", ["x", "a.b.c", ""])
def test_logging_out_with_nonsense_is_no_error_but_needs_a_token(anonymous, db, text):
    assert anonymous.post("auth/logout", {"refresh": text}).status_code == (204 if text else 400)
