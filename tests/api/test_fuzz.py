"""No input makes the API answer 500: random JSON in every field of every body, random text in every parameter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import path_of
from tests.personas import Api, make_key

TEXT = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["\0", "\ud800", "", " ", "a/b/c", "NaN", "1e999", "\u0663"]
)
SCALAR = (
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.sampled_from([10**400, -(2**63), 2**31, 1e308])
)
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
FIELDS = {
    "auth/register": ["email", "password", "full_name"],
    "auth/login": ["email", "password"],
    "auth/refresh": ["refresh"],
    "queues": [
        "name",
        "priority",
        "max_concurrency",
        "visibility_timeout_secs",
        "rate_limit",
        "rate_period_secs",
        "project_id",
    ],
    "retry-policies": ["name", "strategy", "base_delay_ms", "multiplier", "max_delay_ms", "max_attempts", "jitter"],
    "jobs": [
        "queue",
        "queue_id",
        "job_type",
        "payload",
        "priority",
        "run_at",
        "delay_s",
        "idempotency_key",
        "max_attempts",
        "trace_id",
        "depends_on",
    ],
    "jobs/bulk": ["jobs", "atomic"],
    "operations": ["action", "filter", "ids", "reason", "dry_run", "canary", "pace", "pace_per"],
    "batches": ["name", "jobs", "close", "on_end", "on_success", "parent_id"],
    "scheduled-jobs": [
        "name",
        "cron_expression",
        "run_once_at",
        "timezone",
        "job_type",
        "payload_template",
        "misfire_policy",
        "misfire_cap",
        "starts_at",
        "ends_at",
        "jitter_secs",
        "max_fires",
    ],
}
GOOD: dict[str, dict[str, Any]] = {
    "auth/register": {"email": "a@example.com", "password": "one good password"},
    "queues": {"name": "q", "priority": 1, "rate_limit": 1, "rate_period_secs": 1},
    "retry-policies": {"name": "p", "multiplier": 2},
    "jobs": {"job_type": "noop", "payload": {}},
    "operations": {"action": "cancel", "filter": {}},
    "batches": {"name": "b"},
    "scheduled-jobs": {"name": "s", "cron_expression": "0 3 * * *", "job_type": "noop"},
}
#: Whose jobs name a queue each.
ITEMS = ("jobs/bulk", "batches")
PARAMETERS = [
    "limit",
    "offset",
    "cursor",
    "created_from",
    "is_active",
    "queue_id",
    "status",
    "job_type",
    "project_id",
    "org_id",
    "resolved",
    "x",
]
LIGHT = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def _bodies(path: str):
    random = st.dictionaries(st.sampled_from(FIELDS[path]) | TEXT, JSON, max_size=3)
    return random.map(lambda changes: {**GOOD.get(path, {}), **changes})


@pytest.mark.parametrize("path", list(FIELDS))
@LIGHT
@given(data=st.data())
def test_no_body_is_a_500(path, data, queue):
    api = Api(key=make_key(queue.project))
    body: dict[str, Any] = data.draw(_bodies(path))
    if path in ("jobs", "scheduled-jobs"):
        body = {"queue": path_of(queue), **body}
    elif path in ITEMS and data.draw(st.booleans()):
        one = {"queue": path_of(queue), **data.draw(_bodies("jobs"))}
        body = {**body, "jobs": data.draw(st.lists(st.just(one), max_size=3))}

    answer = api.post(path, body)

    assert answer.status_code in {200, 201, 202, 400, 401, 404, 409}, (answer.status_code, json.dumps(body))


@pytest.mark.parametrize(
    "path", ["jobs", "queues", "retry-policies", "dead-letter", "scheduled-jobs", "batches", "operations"]
)
@LIGHT
@given(
    query=st.dictionaries(
        st.sampled_from(PARAMETERS), st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=3
    )
)
def test_no_query_is_a_500(path, query, queue):
    answer = Api(key=make_key(queue.project)).get(path, **query)

    assert answer.status_code in {200, 400, 404}, (answer.status_code, query)
