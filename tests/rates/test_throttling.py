"""Limits at the door: which bucket, what it costs, what the answer says."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import Job
from orgs.models import ApiKey, TokenBucket
from orgs.throttling import address_of
from tests.factories import make_project
from tests.personas import Api, make_key, make_user


def _submit(api, queue):
    return api.post("jobs", {"queue_id": str(queue.pk), "job_type": "noop"})


def test_reading_is_limited_and_says_so(project, settings):
    settings.RATE_READ_PER_MIN = 3
    api = Api(key=make_key(project))

    answers = [api.get("jobs") for _ in range(5)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[0].headers["RateLimit-Policy"] == '"read";q=3;w=60'
    assert re.fullmatch(r'"read";r=2;t=20', answers[0].headers["RateLimit"])
    assert answers[4].headers["RateLimit"].startswith('"read";r=0;t=')
    assert 1 <= int(answers[3].headers["Retry-After"]) <= 20
    assert answers[3].json()["error"] == "too_many_requests"
    assert answers[3].headers["X-Request-Id"]


def test_reading_and_submitting_are_counted_apart(queue, settings):
    settings.RATE_READ_PER_MIN, settings.RATE_SUBMIT_PER_MIN = 1, 1
    api = Api(key=make_key(queue.project))

    assert [api.get("jobs").status_code, api.get("jobs").status_code] == [200, 429]
    assert [_submit(api, queue).status_code, _submit(api, queue).status_code] == [201, 429]


def test_each_job_of_a_list_counts(queue, settings):
    settings.RATE_SUBMIT_PER_MIN = 10
    api = Api(key=make_key(queue.project))
    jobs = [{"queue_id": str(queue.pk), "job_type": "noop"}] * 4

    bulk, batch = api.post("jobs/bulk", {"jobs": jobs}), api.post("batches", {"name": "b", "jobs": jobs})

    assert bulk.headers["RateLimit"].startswith('"submit";r=6;')
    assert batch.headers["RateLimit"].startswith('"submit";r=2;')
    assert api.post("jobs/bulk", {"jobs": jobs[:3]}).status_code == 429
    assert api.post("jobs/bulk", {"jobs": jobs[:2]}).status_code == 201
    assert Job.objects.count() == 10


def test_keys_of_a_project_share_and_projects_do_not(project, organization, settings):
    settings.RATE_READ_PER_MIN = 1
    one, other = Api(key=make_key(project)), Api(key=make_key(project, ApiKey.Scope.READ))
    elsewhere = Api(key=make_key(make_project(organization)))

    assert [api.get("jobs").status_code for api in (one, other, elsewhere)] == [200, 429, 200]


def test_users_do_not_share(as_member, as_viewer, settings):
    settings.RATE_READ_PER_MIN = 1

    assert [api.get("jobs").status_code for api in (as_member, as_member, as_viewer)] == [200, 429, 200]


def test_who_is_not_let_in_costs_nobody_anything(project, settings):
    settings.RATE_READ_PER_MIN = 1

    assert [Api().get("jobs").status_code for _ in range(3)] == [401] * 3
    assert not TokenBucket.objects.exists()


def test_zero_is_no_limit_and_no_header(project, settings, django_assert_num_queries):
    settings.RATE_READ_PER_MIN = 0
    answer = Api(key=make_key(project)).get("jobs")

    assert "RateLimit" not in answer.headers
    assert not TokenBucket.objects.exists()


@pytest.mark.parametrize("email", ["known@example.com", "nobody@example.com", "KNOWN@example.com "])
def test_signing_in_is_limited_by_address_known_or_not(db, settings, email):
    settings.RATE_LOGIN_PER_MIN = 2
    make_user().__class__.objects.create_user("known@example.com", "one good password")
    answers = [Api().post("auth/login", {"email": email, "password": "wrong"}) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert answers[2].json()["error"] == "too_many_requests"
    assert int(answers[2].headers["Retry-After"]) > 20
    right = Api().post("auth/login", {"email": "known@example.com", "password": "one good password"})
    assert right.status_code == (200 if email.startswith("nobody") else 429)


def test_many_accounts_from_one_address_are_limited_too(db, settings):
    settings.RATE_LOGIN_PER_MIN = 2

    statuses = [
        Api().post("auth/login", {"email": f"u{n}@example.com", "password": "x"}).status_code for n in range(12)
    ]

    assert statuses == [401] * 10 + [429] * 2


def test_no_address_of_a_person_is_stored(db, settings):
    settings.RATE_LOGIN_PER_MIN = 2
    Api().post("auth/login", {"email": "known@example.com", "password": "x"})

    assert not TokenBucket.objects.filter(key__contains="known").exists()


@pytest.mark.parametrize("body", ["[]", "{", '{"email": 5}', '{"email": "\\ud800", "password": "x"}'])
def test_a_malformed_sign_in_is_still_a_400(db, settings, body):
    settings.RATE_LOGIN_PER_MIN = 2

    assert Api().send("post", "auth/login", body).status_code == 400


@pytest.mark.parametrize(
    ("remote", "forwarded", "is_behind", "address"),
    [
        ("10.0.0.1", "1.2.3.4", False, "10.0.0.1"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4", True, "1.2.3.4"),
        ("10.0.0.1", None, True, "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", None, False, "2001:db8:1:2::/64"),
        ("::ffff:1.2.3.4", None, False, "1.2.3.4"),
        ("", "evil\n", True, "unknown"),
    ],
)
def test_a_caller_is_known_by_his_network(rf, settings, remote, forwarded, is_behind, address):
    settings.BEHIND_PROXY = is_behind
    request = rf.get("/", REMOTE_ADDR=remote, **({"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {}))

    assert address_of(request) == address


def test_a_submission_with_a_key_costs_two_statements_with_limits_on(queue, settings):
    settings.RATE_SUBMIT_PER_MIN = 60_000
    api = Api(key=make_key(queue.project, ApiKey.Scope.SUBMIT))

    with CaptureQueriesContext(connection) as first:
        _submit(api, queue)
    with CaptureQueriesContext(connection) as following:
        for _ in range(100):
            _submit(api, queue)

    assert len(first) == 3  # it takes tokens for many
    # What it took is good for a while, and the key's last use is noted now and then: a slow machine sees one of them.
    assert 200 <= len(following) <= 203
    assert sum("take_tokens" in query["sql"] for query in following) <= len(following) - 200
