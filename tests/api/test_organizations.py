"""Organizations and projects through the API."""

from __future__ import annotations

import pytest

from orgs.models import ApiKey, OrganizationMember, Project
from tests.factories import make_job, make_queue
from tests.personas import Api, field_of, make_user


@pytest.fixture
def anybody(db):
    return Api(make_user())


def test_the_creator_becomes_owner(anybody):
    answer = anybody.post("organizations", {"name": "Acme Corp"})

    assert answer.status_code == 201
    body = answer.json()
    assert (body["slug"], body["name"], body["role"]) == ("acme-corp", "Acme Corp", "owner")
    assert anybody.get("organizations").json()["items"] == [body]
    assert OrganizationMember.objects.get().role == "owner"


def test_slugs_made_from_names_do_not_collide_and_given_ones_do(anybody):
    slugs = [anybody.post("organizations", {"name": "Acme"}).json()["slug"] for _ in range(3)]
    odd = anybody.post("organizations", {"name": "\u65e5\u672c"}).json()["slug"]
    taken = anybody.post("organizations", {"name": "Acme", "slug": "acme"})
    bad = anybody.post("organizations", {"name": "Acme", "slug": "Ac me"})

    assert slugs == ["acme", "acme-2", "acme-3"]
    assert odd == "unnamed"
    assert (taken.status_code, field_of(taken)) == (409, "slug")
    assert (bad.status_code, field_of(bad)) == (400, "slug")


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, 5, None, "a\u202eb"])
def test_bad_names_are_refused(anybody, name):
    answer = anybody.post("organizations", {"name": name})

    assert (answer.status_code, field_of(answer)) == (400, "name")


def test_a_project_shows_its_key_once(as_owner, organization):
    answer = as_owner.post("projects", {"org_id": str(organization.pk), "name": "Web App"})

    assert answer.status_code == 201
    body = answer.json()
    key = body.pop("api_key")
    assert key.startswith("pk_live_")
    assert answer["Cache-Control"] == "no-store"
    assert as_owner.get(f"projects/{body['id']}").json() == body
    assert key.encode() not in as_owner.get("projects").content
    stored = ApiKey.objects.get()
    assert stored.key_hash == Project.objects.get(pk=body["id"]).api_key_hash
    assert key not in {stored.key_hash, stored.prefix}
    assert Api(key=key).post("queues", {"name": "q"}).status_code == 201


def test_projects_can_be_listed_by_organization(as_owner, owner, organization, project):
    other = as_owner.post("organizations", {"name": "Other"}).json()["id"]
    as_owner.post("projects", {"org_id": other, "name": "P"})

    assert len(as_owner.get("projects").json()["items"]) == 2
    [item] = as_owner.get("projects", org_id=organization.pk).json()["items"]
    assert item["id"] == str(project.pk)


def test_a_deleted_project_takes_its_queues_and_keys_along(as_owner, as_machine, project):
    queue = make_queue(project)
    job = make_job(queue)
    refused = as_owner.delete(f"projects/{project.pk}")
    as_owner.post(f"jobs/{job.pk}/cancel")

    answer = as_owner.delete(f"projects/{project.pk}")

    assert (refused.status_code, answer.status_code) == (409, 204)
    for path in (f"projects/{project.pk}", f"queues/{queue.pk}", f"jobs/{job.pk}"):
        assert as_owner.get(path).status_code == 404
    assert as_owner.get("projects").json()["items"] == []
    assert as_machine.get("jobs").status_code == 401


def test_the_lists_cost_the_same_however_long_they_are(as_owner, organization, django_assert_num_queries):
    for number in range(3):
        as_owner.post("projects", {"org_id": str(organization.pk), "name": f"P{number}"})

    for path in ("organizations", "projects"):
        with django_assert_num_queries(2):
            as_owner.get(path)
