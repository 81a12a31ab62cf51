"""Pages of settings: the project, members, API keys, webhook secrets."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from jobs.models import Job
from orgs.keys import hash_key
from orgs.models import ApiKey, AuditEntry, OrganizationMember, Project, Role, WebhookSecret
from orgs.services import create_api_key
from orgs.webhook_secrets import MAX_USABLE, create_secret, signing_keys
from scheduler_project.lib.sql import database_now
from tests.factories import make_job, make_organization, make_project
from tests.personas import make_member, make_user
from tests.web.forms import found_in, token_of
from tests.web.test_pages import HOSTILE

BUDGET = 12
PAGES = ("settings", "settings/members", "settings/api-keys", "settings/webhook-secrets", "settings/egress")


def read(client, path):
    return client.get(path).content.decode()


def seal_on(client, path):
    return found_in(r'name="seal" value="(\w+)"', read(client, path))


def deeds():
    return list(AuditEntry.objects.order_by("id").values_list("action", flat=True))


def secret_on(answer):
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    return found_in(r'class="snippet"><pre>([^<]+)</pre>', answer.content.decode())


def test_the_pages_stay_in_their_budget(signed_in, home, project, queue, organization, django_assert_max_num_queries):
    for number in range(60):
        create_api_key(project, name=f"k{number}", by=make_member(organization, Role.VIEWER).pk)
        make_project(organization)
    for _ in range(MAX_USABLE):
        create_secret(project, by=None)
    client = signed_in("owner")
    for path in PAGES:
        with django_assert_max_num_queries(BUDGET):
            html = read(client, home + path)
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html), path


def test_tabs_are_those_a_member_may_open(signed_in, home, queue):
    assert read(signed_in("viewer"), f"{home}settings").count("/settings/api-keys") == 0
    assert read(signed_in("manager"), f"{home}settings").count("/settings/api-keys") == 1


# -- the project ---------------------------------------------------------------------------------------------------


def test_a_project_is_renamed_and_its_retention_set(signed_in, home, project, queue):
    client, path = signed_in("manager"), f"{home}settings"
    seal = seal_on(client, path)
    sent = {"name": "  Web  ", "retention_days": "7", "seal": seal}
    assert client.post(f"{path}/edit", sent).url == path
    project.refresh_from_db()
    assert (project.name, project.retention_days) == ("Web", 7)
    assert "archived after 7 days" in read(client, path)
    late = client.post(f"{path}/edit", {**sent, "name": "Late"})
    assert late.status_code == 409
    assert "Somebody changed this project" in late.content.decode()
    client.post(f"{path}/edit", {"name": "Web", "retention_days": "", "seal": seal_on(client, path)})
    project.refresh_from_db()
    assert project.retention_days is None
    assert deeds() == ["project.update", "project.update"]


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ({"name": ""}, "required"),
        ({"name": "x", "retention_days": "0"}, "greater than or equal to 1"),
        ({"name": "x", "retention_days": "3651"}, "less than or equal to 3650"),
        ({"name": "\u202e", "retention_days": ""}, "printable"),
    ],
)
def test_a_bad_project_is_refused_beside_its_field(signed_in, home, project, queue, sent, complaint):
    client, path = signed_in("manager"), f"{home}settings"
    answer = client.post(f"{path}/edit", {**sent, "seal": seal_on(client, path)})
    assert answer.status_code == 422
    assert complaint in answer.content.decode()
    assert Project.objects.get(pk=project.pk).name == project.name


def test_a_new_project_shows_its_key_once(signed_in, home, organization, project, queue):
    client = signed_in("manager")
    answer = client.post(f"{home}settings/projects/new", {"new-name": "Night shift"})
    made = Project.objects.get(slug="night-shift")
    assert made.organization == organization
    assert ApiKey.objects.get(project=made).key_hash == hash_key(secret_on(answer))
    taken = client.post(f"{home}settings/projects/new", {"new-name": "x", "new-slug": "night-shift"})
    assert taken.status_code == 422
    assert "is taken" in taken.content.decode()
    assert "Night shift" in read(client, f"{home}settings")


def test_a_project_goes_only_when_its_jobs_have_ended(signed_in, home, project, queue):
    make_job(queue)
    client, path = signed_in("manager"), f"{home}settings/delete"
    sent = {"confirm_token": token_of(client.post(path)), "typed": project.slug}
    assert client.post(path, {**sent, "typed": "other"}).status_code == 422
    assert "unfinished jobs" in client.post(path, sent, follow=True).content.decode()
    Job.objects.all().delete()
    assert client.post(path, sent).url == "/"
    assert client.get(home).status_code == 404
    assert "project.delete" in deeds()


# -- members -------------------------------------------------------------------------------------------------------


def test_an_owner_adds_changes_and_removes_members(signed_in, home, organization, queue, owner):
    client, path, friend = signed_in("owner"), f"{home}settings/members", make_user()
    assert client.post(f"{path}/add", {"email": friend.email.upper(), "role": "member"}).url == path
    row = OrganizationMember.objects.get(user=friend)
    assert row.role == "member"
    changed = client.post(f"{path}/{row.pk}/role", {"role": "admin"}, follow=True).content.decode()
    row.refresh_from_db()
    assert row.role == "admin"
    assert 'name="role" value="member"' in changed  # what the undo would set
    token = token_of(client.post(f"{path}/{row.pk}/remove"))
    client.post(f"{path}/{row.pk}/remove", {"confirm_token": token})
    assert not OrganizationMember.objects.filter(user=friend).exists()
    assert deeds() == ["member.add", "member.change_role", "member.remove"]
    assert client.post(f"{path}/{row.pk}/role", {"role": "admin"}).status_code == 404


def test_who_can_not_be_added_is_told_beside_the_field(signed_in, home, queue, owner, member):
    client, path = signed_in("owner"), f"{home}settings/members/add"
    unknown = client.post(path, {"email": "nobody@example.com", "role": "viewer"})
    assert "nobody with this address has an account" in unknown.content.decode()
    twice = client.post(path, {"email": member.email, "role": "viewer"})
    assert "is a member already" in twice.content.decode()
    assert (unknown.status_code, twice.status_code) == (422, 422)
    assert client.post(path, {"email": "x", "role": "god"}).status_code == 422


def test_the_last_owner_stays(signed_in, home, organization, queue, owner):
    client, path = signed_in("owner"), f"{home}settings/members"
    row = owner.memberships.get()
    assert "There is one owner" in read(client, path)
    kept = client.post(f"{path}/{row.pk}/role", {"role": "viewer"}, follow=True).content.decode()
    assert "needs an owner" in kept
    token = token_of(client.post(f"{path}/{row.pk}/remove"))
    assert (
        "needs an owner"
        in client.post(f"{path}/{row.pk}/remove", {"confirm_token": token}, follow=True).content.decode()
    )
    make_member(organization, Role.OWNER)
    assert client.post(f"{path}/{row.pk}/remove", {"confirm_token": token}).url == "/"
    assert client.get(path).status_code == 404


def test_members_of_another_organization_are_out_of_reach(signed_in, home, queue, owner):
    foreign = make_member(make_organization(), Role.VIEWER).memberships.get()
    client, path = signed_in("owner"), f"{home}settings/members/{foreign.pk}"
    assert client.post(f"{path}/role", {"role": "owner"}).status_code == 404
    assert client.post(f"{path}/remove").status_code == 404
    assert (
        "is-error"
        in client.post(
            f"{home}settings/members/{owner.memberships.get().pk}/role", {"role": "god"}, follow=True
        ).content.decode()
    )


def test_others_look_but_do_not_touch(signed_in, home, queue, owner):
    html = read(signed_in("manager"), f"{home}settings/members")
    assert owner.email in html
    assert "/role" not in html
    assert "/remove" not in html
    assert "contains" in read(signed_in("viewer"), f"{home}settings/members?q=zzz")


# -- API keys ------------------------------------------------------------------------------------------------------


def test_a_key_is_made_rotated_and_revoked(signed_in, home, project, queue, manager):
    client, path = signed_in("manager"), f"{home}settings/api-keys"
    secret = secret_on(client.post(f"{path}/new", {"name": "ci", "scope": "submit", "days": "30"}))
    key = ApiKey.objects.get(name="ci")
    assert (key.key_hash, key.scope, key.created_by) == (hash_key(secret), "submit", manager)
    assert timedelta(days=29) < (key.expires_at or database_now()) - database_now() < timedelta(days=31)
    html = read(client, path)
    assert key.prefix in html
    assert secret not in html
    fresh = secret_on(client.post(f"{path}/{key.pk}/rotate", {"overlap_secs": "3600"}))
    assert fresh != secret
    key.refresh_from_db()
    assert (key.expires_at or database_now()) - database_now() < timedelta(hours=1)
    assert ">Ends soon<" in read(client, path)
    token = token_of(client.post(f"{path}/{key.pk}/revoke"))
    assert client.post(f"{path}/{key.pk}/revoke", {"confirm_token": token}).url == path
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert f"k-{key.pk}" not in read(client, path)
    assert ">Revoked<" in read(client, f"{path}?show=all")
    assert (
        "is revoked or has expired"
        in client.post(f"{path}/{key.pk}/rotate", {"overlap_secs": "3600"}, follow=True).content.decode()
    )
    assert deeds() == ["api_key.create", "api_key.rotate", "api_key.revoke"]


def test_a_rotation_without_an_overlap_asks_first(signed_in, home, project, queue):
    key = create_api_key(project, name="ci", by=None).row
    client, path = signed_in("manager"), f"{home}settings/api-keys/{key.pk}/rotate"
    token = token_of(client.post(path, {"overlap_secs": "0"}))
    assert ApiKey.objects.count() == 1
    secret_on(client.post(path, {"overlap_secs": "0", "confirm_token": token}))
    key.refresh_from_db()
    assert key.expires_at is not None
    assert key.expires_at <= database_now()


@pytest.mark.parametrize(
    "sent", [{"name": ""}, {"scope": "root"}, {"days": "1"}, {"name": "a\x00"}, {"name": "x" * 101}]
)
def test_a_bad_key_is_refused(signed_in, home, project, queue, sent):
    answer = signed_in("manager").post(
        f"{home}settings/api-keys/new", {"name": "ci", "scope": "read", "days": "0", **sent}
    )
    assert answer.status_code == 422
    assert not ApiKey.objects.exists()


def test_keys_and_secrets_of_a_sister_are_out_of_reach(signed_in, home, organization, queue):
    sister = make_project(organization)
    key, secret = create_api_key(sister, name="theirs", by=None).row, create_secret(sister, by=None).row
    client = signed_in("owner")
    for path in (f"api-keys/{key.pk}", f"webhook-secrets/{secret.pk}"):
        assert client.post(f"{home}settings/{path}/rotate", {"overlap_secs": "3600"}).status_code == 404
        assert client.post(f"{home}settings/{path}/revoke").status_code == 404
    assert "theirs" not in read(client, f"{home}settings/api-keys?show=all")


# -- webhook secrets -----------------------------------------------------------------------------------------------


def test_a_webhook_secret_is_made_rotated_and_revoked(signed_in, home, project, queue):
    client, path = signed_in("manager"), f"{home}settings/webhook-secrets"
    assert "are not signed" in read(client, path)
    text = secret_on(client.post(f"{path}/new"))
    assert text.startswith("whsec_")
    one = WebhookSecret.objects.get()
    assert text not in read(client, path)
    secret_on(client.post(f"{path}/{one.pk}/rotate", {"overlap_secs": "86400"}))
    assert len(signing_keys(project.pk)) == 2
    token = token_of(client.post(f"{path}/{one.pk}/revoke"))
    client.post(f"{path}/{one.pk}/revoke", {"confirm_token": token})
    assert len(signing_keys(project.pk)) == 1
    assert deeds() == ["webhook_secret.create", "webhook_secret.rotate", "webhook_secret.revoke"]
    for _ in range(MAX_USABLE - 1):
        secret_on(client.post(f"{path}/new"))
    assert "revoke one first" in client.post(f"{path}/new", follow=True).content.decode()


def test_hostile_names_are_text(signed_in, home, project, organization, queue):
    Project.objects.filter(pk=project.pk).update(name=HOSTILE[:200])
    create_api_key(project, name="x", by=None)
    ApiKey.objects.update(name=HOSTILE[:100])
    make_member(organization, Role.VIEWER)
    type(make_user()).objects.update(full_name=HOSTILE[:100])
    client = signed_in("owner")
    for path in PAGES:
        html = read(client, home + path)
        assert "<svg onload" not in html
        # An input holds the very value, so that saving does not change it.
        assert "\u202e" not in re.sub(r"<input[^>]*>", "", html)
