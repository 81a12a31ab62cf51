"""Every page and every action of a page, tried by everybody: the exact answer each one gets."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver

from dlq.models import DeadLetter
from jobs.models import CircuitBreaker, Worker
from jobs.services.alert_rules import create_rule
from jobs.services.batches import create_batch
from jobs.services.operations import NewOperation, prepare, start
from jobs.services.schedules import create_schedule
from jobs.services.subscriptions import create_subscription
from orgs.models import Role
from orgs.services import create_api_key
from orgs.webhook_secrets import create_secret
from queues.models import RetryPolicy
from scheduler_project.urls import project_pages
from tests.factories import job_in
from tests.personas import make_member

WHO = ("anonymous", "stranger", "viewer", "member", "manager", "owner")
READ = "302 404 200 200 200 200"
MEMBER_DOES = "302 404 403 302 302 302"
MEMBER_PAGE = "302 404 403 200 200 200"
ADMIN_PAGE = "302 404 403 403 200 200"
ADMIN_DOES = "302 404 403 403 302 302"
#: Below /p/<org>/<project>/. An action that asks for a confirmation answers 200 with the question.
WALK = {
    ("GET", ""): READ,
    ("GET", "jump"): READ,
    ("GET", "first-job"): READ,
    ("GET", "queues"): READ,
    ("GET", "queues/new"): ADMIN_PAGE,
    ("POST", "queues/new"): ADMIN_DOES,
    ("GET", "queues/<queue_id>"): READ,
    ("POST", "queues/<queue_id>/edit"): "302 404 403 403 422 422",
    ("POST", "queues/<queue_id>/pause"): ADMIN_DOES,
    ("POST", "queues/<queue_id>/resume"): ADMIN_DOES,
    ("POST", "queues/<queue_id>/purge"): ADMIN_PAGE,
    ("POST", "queues/<queue_id>/delete"): ADMIN_PAGE,
    ("GET", "retry-policies"): READ,
    ("GET", "retry-policies/new"): ADMIN_PAGE,
    ("POST", "retry-policies/new"): "302 404 403 403 422 422",
    ("POST", "retry-policies/preview"): READ,
    ("GET", "retry-policies/<policy_id>"): READ,
    ("GET", "retry-policies/<policy_id>/edit"): ADMIN_PAGE,
    ("POST", "retry-policies/<policy_id>/edit"): "302 404 403 403 422 422",
    ("POST", "retry-policies/<policy_id>/delete"): ADMIN_PAGE,
    ("GET", "jobs"): READ,
    ("GET", "jobs/export"): READ,
    ("POST", "jobs/act"): MEMBER_DOES,
    ("GET", "jobs/new"): MEMBER_PAGE,
    ("POST", "jobs/new"): MEMBER_DOES,
    ("GET", "jobs/<job_id>"): READ,
    ("POST", "jobs/<job_id>/cancel"): MEMBER_DOES,
    ("POST", "jobs/<job_id>/retry"): MEMBER_DOES,
    ("GET", "jobs/<job_id>/payload"): READ,
    ("GET", "dead-letter"): READ,
    ("GET", "dead-letter/<letter_id>"): READ,
    ("POST", "dead-letter/<letter_id>/resolve"): MEMBER_DOES,
    ("POST", "dead-letter/resolve"): MEMBER_DOES,
    ("GET", "scheduled-jobs"): READ,
    ("GET", "scheduled-jobs/new"): ADMIN_PAGE,
    ("POST", "scheduled-jobs/new"): "302 404 403 403 422 422",
    ("POST", "scheduled-jobs/preview"): READ,
    ("GET", "scheduled-jobs/<schedule_id>"): READ,
    ("GET", "scheduled-jobs/<schedule_id>/edit"): ADMIN_PAGE,
    ("POST", "scheduled-jobs/<schedule_id>/edit"): "302 404 403 403 422 422",
    ("POST", "scheduled-jobs/<schedule_id>/activate"): ADMIN_DOES,
    ("POST", "scheduled-jobs/<schedule_id>/deactivate"): ADMIN_DOES,
    ("POST", "scheduled-jobs/<schedule_id>/pause"): ADMIN_DOES,
    ("POST", "scheduled-jobs/<schedule_id>/resume"): ADMIN_DOES,
    ("POST", "scheduled-jobs/<schedule_id>/trigger"): "302 404 403 302 302 302",
    ("POST", "scheduled-jobs/<schedule_id>/backfill"): ADMIN_DOES,
    ("POST", "scheduled-jobs/<schedule_id>/delete"): ADMIN_PAGE,
    ("GET", "workers"): READ,
    ("GET", "proofs"): READ,
    ("POST", "workers/<worker_id>/drain"): ADMIN_PAGE,
    ("GET", "workflows"): READ,
    ("GET", "workflows/<job_id>"): READ,
    ("POST", "workflows/<job_id>/cancel"): MEMBER_PAGE,
    ("POST", "workflows/<job_id>/retry"): MEMBER_PAGE,
    ("GET", "batches"): READ,
    ("GET", "batches/<batch_id>"): READ,
    ("POST", "batches/<batch_id>/close"): MEMBER_PAGE,
    ("POST", "batches/<batch_id>/cancel"): MEMBER_PAGE,
    ("GET", "circuit-breakers"): READ,
    ("POST", "circuit-breakers/<breaker_id>/reset"): ADMIN_PAGE,
    ("GET", "audit-log"): ADMIN_PAGE,
    ("GET", "settings"): READ,
    ("POST", "settings/edit"): "302 404 403 403 422 422",
    ("POST", "settings/projects/new"): "302 404 403 403 422 422",
    ("POST", "settings/delete"): ADMIN_PAGE,
    ("GET", "settings/members"): READ,
    ("POST", "settings/members/add"): "302 404 403 403 403 422",
    ("POST", "settings/members/<member_id>/role"): "302 404 403 403 403 302",
    ("POST", "settings/members/<member_id>/remove"): "302 404 403 403 403 200",
    ("GET", "settings/api-keys"): ADMIN_PAGE,
    ("POST", "settings/api-keys/new"): "302 404 403 403 422 422",
    ("POST", "settings/api-keys/<key_id>/rotate"): ADMIN_DOES,
    ("POST", "settings/api-keys/<key_id>/revoke"): ADMIN_PAGE,
    ("GET", "settings/webhook-secrets"): ADMIN_PAGE,
    ("POST", "settings/webhook-secrets/new"): "302 404 403 403 201 201",
    ("POST", "settings/webhook-secrets/<secret_id>/rotate"): ADMIN_DOES,
    ("POST", "settings/webhook-secrets/<secret_id>/revoke"): ADMIN_PAGE,
    ("GET", "settings/egress"): ADMIN_PAGE,
    ("POST", "settings/egress"): "302 404 403 403 409 409",
    ("GET", "settings/alerts"): READ,
    ("GET", "settings/alerts/new"): ADMIN_PAGE,
    ("POST", "settings/alerts/new"): "302 404 403 403 422 422",
    ("GET", "settings/alerts/<rule_id>"): ADMIN_PAGE,
    ("POST", "settings/alerts/<rule_id>"): "302 404 403 403 422 422",
    ("POST", "settings/alerts/<rule_id>/delete"): ADMIN_PAGE,
    ("GET", "settings/event-webhooks"): READ,
    ("GET", "settings/event-webhooks/new"): ADMIN_PAGE,
    ("POST", "settings/event-webhooks/new"): "302 404 403 403 422 422",
    ("GET", "settings/event-webhooks/<subscription_id>"): ADMIN_PAGE,
    ("POST", "settings/event-webhooks/<subscription_id>"): "302 404 403 403 422 422",
    ("POST", "settings/event-webhooks/<subscription_id>/test"): ADMIN_DOES,
    ("POST", "settings/event-webhooks/<subscription_id>/delete"): ADMIN_PAGE,
    ("GET", "operations"): READ,
    ("GET", "operations/<operation_id>"): READ,
    ("POST", "operations/<operation_id>/abort"): MEMBER_PAGE,
}
BODIES: dict[str, dict[str, Any]] = {
    "queues/new": {"name": "fresh", "priority": "0", "visibility_timeout_secs": "60"},
}
STEPS = [
    (method, path, who, int(status))
    for (method, path), row in WALK.items()
    for who, status in zip(WHO, row.split(), strict=True)
]


@pytest.fixture
def things(queue):
    """The ids that stand in paths."""
    dead = job_in("dead_letter", queue).job
    schedule = create_schedule(queue, name="nightly", cron_expression="0 3 * * *", job_type="noop")
    worker = Worker.objects.create(project=queue.project, hostname="far", pid=1, version="1", max_concurrency=1)
    operation, _ = prepare(queue.project, NewOperation(action="cancel", filter={}))
    url = "https://hooks.example.com/in"
    subscription = create_subscription(queue.project, name="s", url=url, types=["job.failed"], by=None)
    return {
        "rule_id": create_rule(queue.project, by=None, name="r", kind="no_leader", threshold=1).pk,
        "subscription_id": subscription.pk,
        "operation_id": start(operation, by=None, api_key_id=None).pk,
        "policy_id": RetryPolicy.objects.create(project=queue.project, name="gentle").pk,
        "breaker_id": CircuitBreaker.objects.create(project_id=queue.project_id, name="mail").pk,
        "member_id": make_member(queue.project.organization, Role.VIEWER).memberships.get().pk,
        "key_id": create_api_key(queue.project, name="k", by=None).row.pk,
        "secret_id": create_secret(queue.project, by=None).row.pk,
        "batch_id": create_batch(queue.project_id, "night").pk,
        "queue_id": queue.pk,
        "job_id": dead.pk,
        "letter_id": DeadLetter.objects.get(job=dead).pk,
        "schedule_id": schedule.pk,
        "worker_id": worker.pk,
    }


@pytest.mark.parametrize(("method", "path", "who", "status"), STEPS)
def test_everybody_gets_exactly_what_is_due(request, method, path, who, status, queue, things):
    bodies = {**BODIES, "jobs/new": {"queue": queue.pk, "job_type": "noop", "delay_s": "0", "priority": "0"}}
    client = Client()
    if who != "anonymous":
        client.force_login(request.getfixturevalue("outsider" if who == "stranger" else who))
    place = path
    for name, value in things.items():
        place = place.replace(f"<{name}>", str(value))
    home = f"/p/{queue.project.organization.slug}/{queue.project.slug}/"
    answer = (
        client.generic(method, home + place) if method == "GET" else client.post(home + place, bodies.get(path, {}))
    )

    assert answer.status_code == status, answer.content
    if who == "anonymous":
        assert answer["Location"].startswith("/login?next=")


def test_no_page_is_missing_from_the_walk():
    assert {path for _, path in WALK} == set(_routes(project_pages))


def test_every_page_says_whom_it_is_for():
    for pattern in _patterns(project_pages):
        view: Any = pattern.callback
        while not hasattr(view, "needed_role"):
            assert hasattr(view, "__wrapped__"), f"{pattern} has no @member_view"
            view = view.__wrapped__


def _patterns(patterns):
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern.url_patterns)
        elif isinstance(pattern, URLPattern):
            yield pattern


def _routes(patterns):
    return [str(pattern.pattern).replace("<uuid:", "<") for pattern in _patterns(patterns)]
