"""A database that is really away: honest answers, and all is well once it is back."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client

from tests.personas import Api, make_user


@pytest.fixture
def outage(transactional_db):
    """Cuts the connection and lets no new one be made; call it with False to end it."""
    place = connection.settings_dict["PORT"]

    def switch(is_down: bool) -> None:
        connection.close()
        connection.settings_dict["PORT"] = "1" if is_down else place

    yield switch
    switch(False)


def test_every_door_says_503_and_recovers(outage):
    api, client = Api(make_user()), Client()
    client.cookies["sessionid"] = "x" * 32
    outage(True)

    down = {
        "api": api.get("jobs"),
        "login": api.post("auth/login", {"email": "a@example.com", "password": "x"}),
        "admin": client.get("/admin/"),
        "ready": client.get("/readyz"),
    }
    alive = client.get("/healthz")
    outage(False)

    assert {name: answer.status_code for name, answer in down.items()} == dict.fromkeys(down, 503)
    assert all(answer["Retry-After"] and answer["X-Request-Id"] for answer in down.values())
    assert down["api"].json()["error"] == "internal_error"
    assert "reached" in down["ready"].json()["reason"]
    assert alive.status_code == 200
    assert api.get("jobs").status_code == 200
    assert client.get("/readyz").status_code == 200


def test_a_session_that_was_cut_off_is_replaced(transactional_db):
    api = Api(make_user())
    api.get("jobs")
    connection.connection.close()  # as if the server had gone and come back

    first, second = api.get("jobs"), api.get("jobs")

    assert first.status_code in {200, 503}
    assert second.status_code == 200
