"""Sign in, register, sign out, preferences, and where a stranger is led."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from accounts.models import User
from orgs.models import Project

PASSWORD = "one good password"


@pytest.fixture
def person(db):
    return User.objects.create_user("ana@example.com", PASSWORD)


def _try(client, **more):
    return client.post("/login", {"email": "ana@example.com", "password": PASSWORD, **more})


def test_signing_in_leads_to_the_page_that_was_asked_for(person, client):
    assert client.get("/queues").url == "/login?next=/queues"
    assert _try(client, next="/queues").url == "/queues"
    assert client.post("/logout").url == "/login"
    assert client.get("/queues").status_code == 302


@pytest.mark.parametrize(
    "next_", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "x"]
)
def test_it_never_leads_elsewhere(person, client, next_):
    assert _try(client, next=next_).url == "/"
    assert client.post("/preferences", {"next": next_}).url == "/"


def test_a_wrong_password_and_an_unknown_address_get_the_same_answer(person, client):
    wrong = _try(client, password="not it at all")
    unknown = _try(client, email="nobody@example.com")

    assert wrong.status_code == unknown.status_code == 401
    same = b"The e-mail address or the password is wrong."
    assert same in wrong.content
    assert same in unknown.content


def test_guessing_is_throttled_over_page_and_api_together(person, client, settings):
    settings.RATE_LOGIN_PER_MIN = 3
    answers = [_try(client, password="wrong").status_code for _ in range(4)]

    assert answers == [401, 401, 401, 429]
    api = client.post("/api/auth/login", {"email": "ana@example.com", "password": "x"}, content_type="application/json")
    assert api.status_code == 429


def test_forms_need_their_token(person):
    client = Client(enforce_csrf_checks=True)

    assert _try(client).status_code == 403


def test_from_nothing_to_the_first_job(db, client):
    made = client.post("/register", {"email": "new@example.com", "password": PASSWORD, "full_name": "New"})
    assert made.url == "/"
    assert client.get("/").url == "/welcome"
    shown = client.post("/welcome", {"organization": "Acme", "project": "Web"})

    assert shown.status_code == 201
    project = Project.objects.get()
    html = unescape(shown.content.decode())
    key = html.split("X-API-Key: ")[1].split("'")[0]
    body = {"queue": "default", "job_type": "test.echo", "payload": {"hello": "world"}}
    sent = client.post("/api/jobs", body, content_type="application/json", headers={"X-API-Key": key})
    assert sent.status_code == 201
    arrival = client.get(f"/p/{project.organization.slug}/{project.slug}/first-job").content.decode()
    assert "It arrived" in arrival
    assert client.get("/", follow=True).status_code == 200


def test_a_zone_that_is_none_changes_nothing(db, client):
    client.post("/preferences", {"tz": "Mars/Base"})
    assert "tz" not in client.cookies
    client.post("/preferences", {"tz": "Europe/Berlin", "theme": "dark"})
    assert client.cookies["tz"].value == "Europe/Berlin"
    assert b'data-theme="dark"' in client.get("/login").content


@pytest.mark.parametrize(
    "bad", [{"email": "no address"}, {"password": "short"}, {"email": "a\x00@b.c"}, {"password": ""}]
)
def test_bad_input_is_a_422(db, client, bad):
    assert client.post("/register", {"email": "n@example.com", "password": PASSWORD, **bad}).status_code == 422


def test_an_unknown_page_names_the_request(db, client):
    answer = client.get("/nothing/here")

    assert answer.status_code == 404
    assert answer["X-Request-Id"] in answer.content.decode()
