"""Every path and method of the API, tried by everybody: the exact answer each one gets."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver

from dlq.models import DeadLetter
from jobs.decisions import Failed
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.models import Alert, CircuitBreaker
from jobs.services.alert_rules import create_rule
from jobs.services.batches import create_batch
from jobs.services.operations import NewOperation, prepare, start
from jobs.services.remote import presence
from jobs.services.schedules import create_schedule
from jobs.services.subscriptions import create_subscription
from orgs.models import ApiKey, Role
from orgs.services import create_api_key
from orgs.webhook_secrets import create_secret
from queues.services import create_retry_policy
from scheduler_project.lib.ids import uuid7
from scheduler_project.urls import api as api_patterns
from tests.factories import claim_one, make_job, make_project, path_of
from tests.personas import Api, make_key, make_member, make_user

WHO = (
    "anonymous", "stranger", "viewer", "member", "manager", "owner",
    "wrong_key", "read_key", "submit_key", "manage_key", "foreign_key",
)  # fmt: skip
PUBLIC_REFUSED = "401 401 401 401 401 401  401 401 401 401 401"
PERSONS_LIST = "401 200 200 200 200 200  401 403 403 403 403"
ANYBODYS_LIST = "401 200 200 200 200 200  401 200 200 200 200"
READ = "401 404 200 200 200 200  401 200 200 200 404"
MANAGES = "401 404 403 403 200 200  401 403 403 200 404"
SUBMITS = "401 404 403 200 200 200  401 403 200 200 404"
CREATES = "401 404 403 201 201 201  401 403 201 201 404"
ADMINS = "401 404 403 403 200 200  401 403 403 403 403"
RUNS_JOBS = "401 403 403 403 403 403  401 403 403 200 200"
WALK = {
    ("POST", "auth/register"): "201 201 201 201 201 201  201 201 201 201 201",
    ("POST", "auth/login"): PUBLIC_REFUSED,
    ("POST", "auth/refresh"): PUBLIC_REFUSED,
    ("GET", "organizations"): PERSONS_LIST,
    ("POST", "organizations"): "401 201 201 201 201 201  401 403 403 403 403",
    ("GET", "organizations/<org_id>"): ADMINS,
    ("PATCH", "organizations/<org_id>"): ADMINS,
    ("GET", "projects"): PERSONS_LIST,
    ("POST", "projects"): "401 404 403 403 201 201  401 403 403 403 403",
    ("GET", "projects/<project_id>"): "401 404 200 200 200 200  401 403 403 403 403",
    ("DELETE", "projects/<project_id>"): "401 404 403 403 204 204  401 403 403 403 403",
    ("GET", "queues"): ANYBODYS_LIST,
    ("POST", "queues"): "401 404 403 403 201 201  401 403 403 201 404",
    ("GET", "queues/<queue_id>"): READ,
    ("DELETE", "queues/<queue_id>"): "401 404 403 403 204 204  401 403 403 204 404",
    ("POST", "queues/<queue_id>/pause"): "401 404 403 403 200 200  401 403 403 200 404",
    ("POST", "queues/<queue_id>/resume"): "401 404 403 403 200 200  401 403 403 200 404",
    ("PATCH", "queues/<queue_id>"): MANAGES,
    ("PATCH", "retry-policies/<policy_id>"): MANAGES,
    ("GET", "retry-policies"): ANYBODYS_LIST,
    ("POST", "retry-policies"): "401 404 403 403 201 201  401 403 403 201 404",
    ("GET", "retry-policies/<policy_id>"): READ,
    ("DELETE", "retry-policies/<policy_id>"): "401 404 403 403 204 204  401 403 403 204 404",
    ("GET", "circuit-breakers"): ANYBODYS_LIST,
    ("GET", "circuit-breakers/<breaker_id>"): READ,
    ("POST", "circuit-breakers/<breaker_id>/reset"): MANAGES,
    ("GET", "jobs"): ANYBODYS_LIST,
    ("POST", "jobs"): "401 404 403 201 201 201  401 403 201 201 404",
    ("GET", "jobs/<job_id>"): READ,
    ("POST", "jobs/<job_id>/cancel"): "401 404 403 200 200 200  401 403 200 200 404",
    ("GET", "jobs/<job_id>/executions"): READ,
    ("GET", "jobs/<job_id>/logs"): READ,
    ("POST", "jobs/bulk"): CREATES,
    ("POST", "jobs/<job_id>/retry"): SUBMITS.replace("200", "409"),
    ("GET", "jobs/<job_id>/explain"): READ,
    ("GET", "operations"): ANYBODYS_LIST,
    ("POST", "operations"): SUBMITS.replace("200", "202"),
    ("GET", "operations/<operation_id>"): READ,
    ("POST", "operations/<operation_id>/abort"): SUBMITS,
    ("GET", "scheduled-jobs"): ANYBODYS_LIST,
    ("POST", "scheduled-jobs"): MANAGES.replace("200", "201"),
    ("POST", "scheduled-jobs/preview"): ANYBODYS_LIST,
    ("GET", "scheduled-jobs/<schedule_id>"): READ,
    ("PATCH", "scheduled-jobs/<schedule_id>"): MANAGES,
    ("POST", "scheduled-jobs/<schedule_id>/activate"): MANAGES,
    ("POST", "scheduled-jobs/<schedule_id>/deactivate"): MANAGES,
    ("POST", "scheduled-jobs/<schedule_id>/pause"): MANAGES,
    ("POST", "scheduled-jobs/<schedule_id>/resume"): MANAGES,
    ("POST", "scheduled-jobs/<schedule_id>/trigger"): CREATES,
    ("GET", "scheduled-jobs/<schedule_id>/fires"): READ,
    ("POST", "scheduled-jobs/<schedule_id>/backfill"): MANAGES,
    ("GET", "batches"): ANYBODYS_LIST,
    ("POST", "batches"): CREATES,
    ("GET", "batches/<batch_id>"): READ,
    ("POST", "batches/<batch_id>/jobs"): CREATES,
    ("POST", "batches/<batch_id>/close"): SUBMITS,
    ("POST", "batches/<batch_id>/cancel"): SUBMITS.replace("200", "202"),
    ("GET", "job-types"): ANYBODYS_LIST,
    ("GET", "metrics/system"): PERSONS_LIST,
    ("GET", "stats/queues"): ANYBODYS_LIST,
    ("GET", "audit"): ADMINS,
    ("POST", "ws-tickets"): "401 201 201 201 201 201  401 201 201 201 201",
    ("GET", "organizations/<org_id>/members"): "401 404 200 200 200 200  401 403 403 403 403",
    ("POST", "organizations/<org_id>/members"): "401 404 403 403 403 201  401 403 403 403 403",
    ("PATCH", "organizations/<org_id>/members/<member_id>"): "401 404 403 403 403 200  401 403 403 403 403",
    ("DELETE", "organizations/<org_id>/members/<member_id>"): "401 404 403 403 403 204  401 403 403 403 403",
    ("GET", "projects/<project_id>/api-keys"): ADMINS,
    ("POST", "projects/<project_id>/api-keys"): ADMINS.replace("200", "201"),
    ("DELETE", "projects/<project_id>/api-keys/<key_id>"): ADMINS.replace("200", "204"),
    ("POST", "projects/<project_id>/api-keys/<key_id>/rotate"): ADMINS.replace("200", "201"),
    ("GET", "projects/<project_id>/webhook-secrets"): ADMINS,
    ("POST", "projects/<project_id>/webhook-secrets"): ADMINS.replace("200", "201"),
    ("DELETE", "projects/<project_id>/webhook-secrets/<secret_id>"): ADMINS.replace("200", "204"),
    ("POST", "projects/<project_id>/webhook-secrets/<secret_id>/rotate"): ADMINS.replace("200", "201"),
    ("POST", "auth/logout"): "204 204 204 204 204 204  204 204 204 204 204",
    ("POST", "auth/password"): "401 400 400 400 400 400  401 403 403 403 403",
    ("GET", "dead-letter"): ANYBODYS_LIST,
    ("GET", "dead-letter/<letter_id>"): READ,
    ("POST", "dead-letter/<letter_id>/resolve"): "401 404 403 200 200 200  401 403 200 200 404",
    ("GET", "workers"): PERSONS_LIST,
    ("GET", "alert-rules"): ANYBODYS_LIST,
    ("POST", "alert-rules"): "401 404 403 403 201 201  401 403 403 201 404",
    ("GET", "alert-rules/<rule_id>"): READ,
    ("PATCH", "alert-rules/<rule_id>"): MANAGES,
    ("DELETE", "alert-rules/<rule_id>"): "401 404 403 403 204 204  401 403 403 204 404",
    ("GET", "alerts"): ANYBODYS_LIST,
    ("GET", "alerts/<alert_id>"): READ,
    ("GET", "event-subscriptions"): ANYBODYS_LIST,
    ("POST", "event-subscriptions"): "401 404 403 403 201 201  401 403 403 201 404",
    ("GET", "event-subscriptions/<subscription_id>"): READ,
    ("PATCH", "event-subscriptions/<subscription_id>"): MANAGES,
    ("DELETE", "event-subscriptions/<subscription_id>"): "401 404 403 403 204 204  401 403 403 204 404",
    ("POST", "event-subscriptions/<subscription_id>/test"): "401 404 403 403 202 202  401 403 403 202 404",
    ("POST", "worker/claim"): RUNS_JOBS,
    ("POST", "worker/heartbeat"): RUNS_JOBS,
    ("POST", "worker/finish"): "401 403 403 403 403 403  401 403 403 409 409",
    ("POST", "workers/<worker_id>/drain"): "401 404 403 403 202 202  401 403 403 202 404",
}
STEPS = [
    pytest.param(method, path, who, int(status), id=f"{method} {path} {who}")
    for (method, path), statuses in WALK.items()
    for who, status in [*zip(WHO, statuses.split(), strict=True), ("expired_key", statuses.split()[6])]
]
_numbers = itertools.count(1)


@pytest.fixture
def speaker(request, who, db):
    scopes = {"read_key": ApiKey.Scope.READ, "submit_key": ApiKey.Scope.SUBMIT, "manage_key": ApiKey.Scope.MANAGE}
    if who == "anonymous":
        return Api()
    if who == "wrong_key":
        return Api(key="pk_live_" + "0" * 36)
    if who == "expired_key":
        return Api(key=make_key(request.getfixturevalue("project"), expires_at=datetime(2020, 1, 1, tzinfo=UTC)))
    if who == "foreign_key":
        return Api(key=make_key(make_project()))
    if who in scopes:
        return Api(key=make_key(request.getfixturevalue("project"), scopes[who]))
    return Api(request.getfixturevalue("outsider" if who == "stranger" else who))


@pytest.fixture
def things(queue):
    """One of each, and what a body that makes another one says."""
    project = queue.project
    job = make_job(queue, max_attempts=1)
    settle([Ending.of(claim_one(queue), Failed("x"), str(uuid7()))])
    letter = DeadLetter.objects.get(job_id=job.pk)
    policy = create_retry_policy(project, name="p")
    schedule = create_schedule(queue, name="s", cron_expression="0 0 1 1 *", job_type="noop")
    operation, _ = prepare(project, NewOperation(action="cancel", filter={}))
    start(operation, by=None, api_key_id=None)
    ids = {
        "project_id": project.pk,
        "policy_id": policy.pk,
        "breaker_id": CircuitBreaker.objects.create(project_id=project.pk, name="c", state="open").pk,
        "letter_id": letter.pk,
        "queue_id": queue.pk,
        "schedule_id": schedule.pk,
        "operation_id": operation.pk,
        "batch_id": create_batch(project.pk, "b").pk,
        "key_id": create_api_key(project, name="k", by=None).row.pk,
        "secret_id": create_secret(project, by=None).row.pk,
        "member_id": make_member(project.organization, Role.VIEWER).memberships.get().pk,
    }
    rule = create_rule(project, by=None, name="r", kind="no_leader", threshold=1)
    alert = Alert(project=project, rule_id=rule.pk, rule_name="r", kind=rule.kind, threshold=1, value=2)
    alert.save(force_insert=True)
    url = "https://hooks.example.com/in"
    subscription = create_subscription(project, name="s", url=url, types=["job.failed"], by=None)
    ids |= {"rule_id": rule.pk, "alert_id": alert.pk, "subscription_id": subscription.pk}
    ids["worker_id"] = presence.meet(project.pk, uuid7(), presence.Info(), ["a/b/*"])
    return {name: str(value) for name, value in ids.items()} | {"org_id": str(project.organization_id)}


def _body(path: str, things) -> dict[str, object]:
    name = f"new {next(_numbers)}"
    return {
        "auth/register": {"email": f"new{next(_numbers)}@example.com", "password": "one good password"},
        "auth/login": {"email": "nobody@example.com", "password": "x"},
        "auth/refresh": {"refresh": "x"},
        "organizations": {"name": name},
        "projects": {"name": name, "org_id": things["org_id"]},
        "queues": {"name": name, "project_id": things["project_id"]},
        "retry-policies": {"name": name, "project_id": things["project_id"]},
        "alert-rules": {"name": name, "kind": "no_leader", "threshold": 5, "project_id": things["project_id"]},
        "event-subscriptions": {
            "name": name,
            "url": "https://hooks.example.com/",
            "types": ["job.failed"],
            "project_id": things["project_id"],
        },
        "jobs": {"queue_id": things["queue_id"], "job_type": "noop"},
        "worker/claim": {"worker_id": str(uuid7())},
        "worker/heartbeat": {"worker_id": str(uuid7())},
        "worker/finish": {
            "worker_id": str(uuid7()),
            "results": [{"id": str(uuid7()), "lease_token": str(uuid7()), "outcome": "completed"}],
        },
        "dead-letter/<letter_id>/resolve": {"action": "discarded"},
        "jobs/bulk": {"jobs": [{"queue_id": things["queue_id"], "job_type": "noop"}]},
        "operations": {"action": "cancel", "filter": {}, "project_id": things["project_id"]},
        "scheduled-jobs": {
            "name": name,
            "queue_id": things["queue_id"],
            "cron_expression": "0 0 * * *",
            "job_type": "noop",
        },
        "scheduled-jobs/preview": {"cron_expression": "0 9 * * 1", "timezone": "Europe/Berlin"},
        "scheduled-jobs/<schedule_id>/backfill": {"since": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"},
        "batches": {"name": name, "project_id": things["project_id"]},
        "batches/<batch_id>/jobs": {"jobs": [{"queue_id": things["queue_id"], "job_type": "noop"}]},
        "organizations/<org_id>/members": {"email": make_user().email, "role": "member"},
        "organizations/<org_id>/members/<member_id>": {"role": "member"},
        "projects/<project_id>/api-keys": {"name": name},
        "auth/logout": {"refresh": "x"},
        "auth/password": {"old_password": "x", "new_password": "another good one"},
    }.get(path, {})


def _send(speaker, method: str, path: str, ids, body) -> Any:
    for name, value in ids.items():
        path = path.replace(f"<{name}>", value)
    if path == "audit":
        path = f"audit?org_id={ids['org_id']}"
    return speaker.send(method, path, json.dumps(body)) if method in ("POST", "PATCH") else speaker.send(method, path)


@pytest.mark.parametrize(("method", "path", "who", "status"), STEPS)
def test_everybody_gets_exactly_what_is_due(method, path, who, status, speaker, things, queue):
    ids = dict(things)
    if "<job_id>" in path:
        ids["job_id"] = str(make_job(queue).pk)

    answer = _send(speaker, method, path, ids, _body(path, things))

    assert answer.status_code == status, answer.content
    if status == 404:
        unknown = {name: str(uuid7()) for name in ids}
        nowhere = _send(speaker, method, path, unknown, {**_body(path, {**things, **unknown})})
        assert nowhere.status_code == 404
        assert nowhere.content == answer.content


def test_no_path_and_no_method_is_missing_from_the_walk():
    assert set(_routes(api_patterns)) == set(WALK)


def _routes(patterns, prefix: str = ""):
    for pattern in patterns:
        route = prefix + str(pattern.pattern).replace("<uuid:", "<")
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            view: Any = pattern.callback.__dict__["view_class"]
            yield from (
                (method.upper(), route) for method in ("get", "post", "put", "patch", "delete") if hasattr(view, method)
            )


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("jobs", "queue_id"),
        ("dead-letter", "queue_id"),
        ("queues", "project_id"),
        ("retry-policies", "project_id"),
        ("circuit-breakers", "project_id"),
        ("projects", "org_id"),
        ("scheduled-jobs", "queue_id"),
        ("scheduled-jobs", "project_id"),
        ("batches", "project_id"),
        ("operations", "project_id"),
        ("alert-rules", "project_id"),
        ("alerts", "project_id"),
        ("event-subscriptions", "project_id"),
        ("audit", "org_id"),
    ],
)
def test_filters_by_what_is_not_seen_are_a_404_as_for_unknown_ids(as_outsider, things, path, query):
    foreign, unknown = as_outsider.get(path, **{query: things[query]}), as_outsider.get(path, **{query: uuid7()})

    assert foreign.status_code == unknown.status_code == 404
    assert foreign.content == unknown.content


def test_the_path_of_a_foreign_queue_looks_unknown(as_outsider, queue):
    foreign = as_outsider.post("jobs", {"queue": path_of(queue), "job_type": "noop"})
    unknown = as_outsider.post("jobs", {"queue": f"{path_of(queue)}x", "job_type": "noop"})

    assert foreign.status_code == unknown.status_code == 404
    assert foreign.content == unknown.content


def test_lists_show_nothing_of_others(as_outsider, things):
    of_projects = ("queues", "retry-policies", "projects", "circuit-breakers")
    of_work = ("jobs", "dead-letter", "scheduled-jobs", "batches", "operations")
    of_alerts = ("alert-rules", "alerts", "event-subscriptions")
    for path in of_projects + of_work + of_alerts:
        assert as_outsider.get(path).json()["items"] == [], path


def test_a_lost_membership_ends_access_at_once(as_member, member, queue):
    assert as_member.get(f"queues/{queue.pk}").status_code == 200
    member.memberships.all().delete()

    assert as_member.get(f"queues/{queue.pk}").status_code == 404


def test_a_changed_role_counts_at_once(as_member, member, queue):
    member.memberships.update(role="viewer")

    assert as_member.post("jobs", {"queue_id": str(queue.pk), "job_type": "noop"}).status_code == 403


def test_two_memberships_do_not_mix(as_member, member, queue, outsider):
    """An owner elsewhere is no owner here, and rows do not appear twice."""
    outsider.memberships.get().organization.members.create(user=member, role="owner")

    assert as_member.post(f"queues/{queue.pk}/pause").status_code == 403
    assert len(as_member.get("queues").json()["items"]) == 1
