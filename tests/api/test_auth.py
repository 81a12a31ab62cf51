"""Signing up, signing in, staying signed in."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from accounts.models import RefreshFamily, User
from accounts.services import change_password
from accounts.tokens import issue
from tests.personas import Api, field_of, make_user

PASSWORD = "correct horse battery"


def _claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def _register(api: Api, email: str = "ada@example.com", **more: str):
    return api.post("auth/register", {"email": email, "password": PASSWORD, **more})


def test_registering_signs_in(anonymous):
    answer = _register(anonymous, "Ada@Example.com", full_name="Ada L")

    assert answer.status_code == 201
    body = answer.json()
    assert body["token_type"] == "Bearer"
    assert body["expires_in"] == 900
    assert body["user"]["email"] == "ada@example.com"
    assert "password" not in body["user"]
    assert answer["Cache-Control"] == "no-store"
    assert Api(Authorization=f"Bearer {body['access']}").get("organizations").status_code == 200


def test_tokens_carry_the_claims_of_the_specification(anonymous):
    body = _register(anonymous).json()

    access, refresh = _claims(body["access"]), _claims(body["refresh"])
    user = User.objects.get()
    assert access["sub"] == str(user.pk)
    assert access["email"] == "ada@example.com"
    assert access["exp"] - access["iat"] == 900
    assert refresh["exp"] - refresh["iat"] == 604_800
    assert abs(access["iat"] - time.time()) < 60


def test_an_address_can_be_registered_once_whatever_its_case(anonymous):
    _register(anonymous)

    again = _register(anonymous, "ADA@example.COM")

    assert again.status_code == 409
    assert field_of(again) == "email"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "not an address"),
        ("email", 5),
        ("email", "\u00e9@example.com"),
        ("email", "ada@ex\u00e4mple.com"),
        ("email", ""),
        ("password", "short"),
        ("password", "12345678901"),
        ("password", "ada@example.com"),
        ("password", "x" * 1_001),
        ("password", None),
        ("password", "a\u0000bcdefghij"),
        ("password", "\ud83d" * 12),
        ("full_name", 7),
        ("full_name", "a\u202eb"),
        ("is_staff", True),
    ],
)
def test_bad_registrations_name_the_field(anonymous, field, value):
    body = {"email": "ada@example.com", "password": PASSWORD, field: value}

    answer = anonymous.post("auth/register", body)

    assert answer.status_code == 400
    assert answer.json()["error"] == "validation_error"
    assert field_of(answer) == field


def test_logging_in_ignores_the_case_of_the_address(anonymous):
    _register(anonymous)

    answer = anonymous.post("auth/login", {"email": "ADA@EXAMPLE.com", "password": PASSWORD})

    assert answer.status_code == 200
    assert set(answer.json()) == {"access", "refresh", "token_type", "expires_in"}


def test_wrong_password_unknown_and_closed_account_get_the_same_answer(anonymous):
    _register(anonymous)
    _register(anonymous, "closed@example.com")
    User.objects.filter(email="closed@example.com").update(is_active=False)

    answers = [
        anonymous.post("auth/login", {"email": "ada@example.com", "password": "wrong"}),
        anonymous.post("auth/login", {"email": "nobody@example.com", "password": PASSWORD}),
        anonymous.post("auth/login", {"email": "closed@example.com", "password": PASSWORD}),
    ]

    assert [answer.status_code for answer in answers] == [401] * 3
    assert len({answer.content for answer in answers}) == 1
    assert answers[0]["WWW-Authenticate"].startswith("Bearer")


def test_unknown_account_costs_a_hash_like_a_known_one(anonymous, monkeypatch):
    _register(anonymous)
    hashed: list[str] = []
    from django.contrib.auth import hashers

    hasher = hashers.get_hasher()
    original = type(hasher).encode

    def counting(self, password, *rest, **more):
        hashed.append(password)
        return original(self, password, *rest, **more)

    monkeypatch.setattr(type(hasher), "encode", counting)

    for email in ("ada@example.com", "nobody@example.com"):
        hashed.clear()
        anonymous.post("auth/login", {"email": email, "password": "wrong"})
        assert len(hashed) == 1, email


def test_a_refresh_token_works_once_and_its_reuse_ends_the_family(anonymous):
    first = _register(anonymous).json()["refresh"]

    second = anonymous.post("auth/refresh", {"refresh": first})
    reused = anonymous.post("auth/refresh", {"refresh": first})
    successor = anonymous.post("auth/refresh", {"refresh": second.json()["refresh"]})

    assert second.status_code == 200
    assert set(second.json()) == {"access", "refresh", "token_type", "expires_in"}
    assert reused.status_code == 401
    assert successor.status_code == 401
    assert RefreshFamily.objects.get().revoked_at is not None


def test_another_log_in_survives_the_death_of_a_family(anonymous):
    stolen = _register(anonymous).json()["refresh"]
    other = anonymous.post("auth/login", {"email": "ada@example.com", "password": PASSWORD}).json()["refresh"]
    for _ in range(2):
        anonymous.post("auth/refresh", {"refresh": stolen})

    assert anonymous.post("auth/refresh", {"refresh": other}).status_code == 200


def test_a_new_password_ends_every_token(anonymous):
    tokens = _register(anonymous).json()
    user = User.objects.get()

    change_password(user, old=PASSWORD, new="another good one")

    assert anonymous.post("auth/refresh", {"refresh": tokens["refresh"]}).status_code == 401
    assert Api(Authorization=f"Bearer {tokens['access']}").get("organizations").status_code == 401
    assert anonymous.post("auth/login", {"email": user.email, "password": "another good one"}).status_code == 200


def test_a_closed_account_is_out_at_once(anonymous):
    user = make_user()
    tokens = issue(user)
    User.objects.filter(pk=user.pk).update(is_active=False)

    assert Api(Authorization=f"Bearer {tokens.access}").get("organizations").status_code == 401
    assert anonymous.post("auth/refresh", {"refresh": tokens.refresh}).status_code == 401


def _unsigned(token: str) -> str:
    header = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    return f"{header}.{token.split('.')[1]}."


def test_forged_and_misused_tokens_are_refused(db, anonymous):
    tokens = issue(make_user())
    other_key = tokens.access[:-4] + ("AAAA" if not tokens.access.endswith("AAAA") else "BBBB")
    bad = [
        _unsigned(tokens.access),
        tokens.refresh,
        other_key,
        "",
        "x",
        "a.b.c",
        "a b",
        "\u00e9.\u00e9.\u00e9",
        "." * 5_000,
    ]

    for token in bad:
        answer = Api(Authorization=f"Bearer {token}").get("jobs")
        assert answer.status_code == 401, token[:40]
        assert answer.json()["error"] == "unauthorized"
        assert answer["WWW-Authenticate"].startswith("Bearer")
    assert anonymous.post("auth/refresh", {"refresh": tokens.access}).status_code == 401


def test_expired_families_are_cleared_at_the_next_log_in(db):
    user = make_user()
    issue(user)
    from django.db.models.functions import Now

    RefreshFamily.objects.update(expires_at=Now())
    issue(user)

    assert RefreshFamily.objects.count() == 1
