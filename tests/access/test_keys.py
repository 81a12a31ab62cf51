"""API keys: which are let in, and what using them costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from orgs.keys import hash_key
from orgs.keys import make_key as new_key
from orgs.models import ApiKey
from orgs.services import create_api_key, revoke_api_key
from scheduler_project.demo import DEMO_API_KEY
from scheduler_project.lib.errors import Conflict, ValidationFailed
from tests.personas import Api, make_key


def _age(seconds: int):
    return datetime.now(UTC) - timedelta(seconds=seconds)


def test_both_headers_take_a_key(project):
    key = make_key(project)

    assert Api(key=key).get("jobs").status_code == 200
    assert Api(Authorization=f"Api-Key {key}").get("jobs").status_code == 200
    assert Api(Authorization=f"api-key   {key} ").get("jobs").status_code == 200


@pytest.mark.parametrize("change", [{"revoked_at": Now()}, {"expires_at": Now()}])
def test_a_revoked_or_expired_key_is_refused_like_an_unknown_one(project, change):
    key = make_key(project)
    ApiKey.objects.update(**change)

    answer, unknown = Api(key=key).get("jobs"), Api(key=new_key()).get("jobs")

    assert answer.status_code == unknown.status_code == 401
    assert answer.content == unknown.content


def test_a_key_that_expires_later_works(project):
    assert Api(key=make_key(project, expires_at=datetime(2100, 1, 1, tzinfo=UTC))).get("jobs").status_code == 200


@pytest.mark.parametrize("key", ["", " ", "x", "pk_live_", "pk_live_" + "a" * 36, "\u00e9" * 44, "pk_demo_\u00e9"])
def test_what_can_be_no_key_is_refused_without_a_query(db, key, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert Api(key=key).get("jobs").status_code == 401


def test_a_mistyped_key_is_refused_without_a_query(project, django_assert_num_queries):
    key = make_key(project)
    mistyped = key[:20] + ("a" if key[20] != "a" else "b") + key[21:]

    with django_assert_num_queries(0):
        assert Api(key=mistyped).get("jobs").status_code == 401


@pytest.mark.parametrize(("used_s_ago", "is_noted"), [(None, True), (61, True), (30, False)])
def test_use_is_noted_once_a_minute(project, used_s_ago, is_noted):
    key = make_key(project)
    before = None if used_s_ago is None else _age(used_s_ago)
    ApiKey.objects.update(last_used_at=before)

    Api(key=key).get("jobs")

    assert (ApiKey.objects.get().last_used_at != before) is is_noted


def test_a_demo_key_works_anywhere_but_in_production(project, settings):
    ApiKey.objects.create(project=project, name="demo", prefix="pk_demo_", key_hash=hash_key(DEMO_API_KEY))

    assert Api(key=DEMO_API_KEY).get("jobs").status_code == 200
    settings.IS_PRODUCTION = True
    assert Api(key=DEMO_API_KEY).get("jobs").status_code == 401


def test_revoking_twice_is_a_conflict(project):
    shown = create_api_key(project, name="k", by=None)
    revoke_api_key(shown.row.pk)

    with pytest.raises(Conflict):
        revoke_api_key(shown.row.pk)


def test_scopes_are_checked(project):
    with pytest.raises(ValidationFailed):
        create_api_key(project, name="k", scope="admin", by=None)
