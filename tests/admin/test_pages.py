"""Django admin: every model has a list and a page, and what has a life cycle is only looked at."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import RefreshFamily, User
from accounts.tokens import issue
from jobs.models import (
    Alert,
    ArchivedJob,
    CircuitBreaker,
    EventWatcher,
    Job,
    JobDependency,
    JobStat,
    JobStatDelta,
    LeaderTerm,
    OutgoingEvent,
    ProofResult,
    QueueDepth,
    QueueStat,
    ScheduledJob,
    ScheduleFire,
    WorkerClaim,
    WorkerHeartbeat,
)
from jobs.services.alert_rules import create_rule
from jobs.services.operations import NewOperation, prepare, start
from jobs.services.sample_data import load_sample_data
from jobs.services.sample_writer import WORKER_ID
from jobs.services.subscriptions import create_subscription
from orgs.models import AuditEntry, LiveTicket, Organization, TokenBucket, WebhookSecret
from orgs.webhook_secrets import create_secret
from queues.models import Queue
from scheduler_project.lib.admin import ReadOnlyAdmin

APPS = ("accounts", "orgs", "queues", "dlq", "jobs")
OURS = [model for model in admin.site._registry if model.__module__.split(".")[0] in APPS]


@pytest.fixture
def operator(client, db):
    """An operator who has logged in, and a row in every table."""
    load_sample_data()
    alice = User.objects.get(email="admin@example.com")
    issue(alice)
    organization, schedule = Organization.objects.all()[0], ScheduledJob.objects.all()[0]
    AuditEntry.objects.create(organization=organization, user=alice, action="a", target_type="t", target_id="1")
    create_secret(schedule.project, by=alice.pk)
    TokenBucket.objects.create(key="k", tokens=1)
    CircuitBreaker.objects.create(project_id=schedule.project_id, name="b")
    LeaderTerm.objects.create(hostname="h", pid=1, backend_pid=2)
    WorkerHeartbeat.objects.create(worker_id=WORKER_ID, active_job_count=1, cpu_percent=1, memory_mb=1)
    ProofResult.objects.create(name="claim", verdict="met", command="manage.py prove claim", version="1", took_s=1)
    moment = schedule.created_at
    ScheduleFire.objects.create(
        project_id=schedule.project_id, scheduled_job=schedule, due_at=moment, outcome="skipped", reason="paused"
    )
    start(prepare(schedule.project, NewOperation(action="retry", filter={}))[0], by=alice.pk, api_key_id=None)
    rule = create_rule(schedule.project, by=alice.pk, name="r", kind="no_leader", threshold=1)
    Alert.objects.create(
        project=schedule.project, rule_id=rule.pk, rule_name="r", kind="no_leader", threshold=1, value=2
    )
    url = "https://hooks.example.com/in"
    create_subscription(schedule.project, name="s", url=url, types=["job.failed"], by=alice.pk)
    done = Job.objects.filter(status="completed")[0]
    shared = {column.name for column in ArchivedJob._meta.fields} & {column.attname for column in Job._meta.fields}
    ArchivedJob.objects.create(**{name: getattr(done, name) for name in shared})
    client.force_login(alice)
    return client


def _url(model, page: str, *args) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def test_every_model_of_ours_has_its_pages():
    from django.apps import apps

    models = {
        model
        for app in ("accounts", "orgs", "queues", "dlq", "jobs")
        for model in apps.get_app_config(app).get_models()
    }

    # Rows of the engine's own housekeeping, which nobody would look for.
    statistics = {JobStat, JobStatDelta, QueueDepth, QueueStat}
    inner = {JobDependency, WorkerClaim, EventWatcher, LiveTicket, OutgoingEvent} | statistics
    assert models - set(OURS) == inner


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_list_search_and_page_of_every_model(operator, model):
    row = model.objects.first()
    assert row is not None

    assert operator.get(_url(model, "changelist")).status_code == 200
    assert operator.get(_url(model, "changelist"), {"q": "00000000-0000-0000-0000-000000000000"}).status_code == 200
    assert operator.get(_url(model, "changelist"), {"q": "text"}).status_code == 200
    page = operator.get(_url(model, "change", row.pk))
    assert page.status_code == 200
    if isinstance(admin.site._registry[model], ReadOnlyAdmin):
        assert b'name="_save"' not in page.content


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_no_list_counts_without_bound_or_asks_once_a_row(operator, model):
    with CaptureQueriesContext(connection) as seen:
        operator.get(_url(model, "changelist"))

    counts = [query["sql"] for query in seen if "COUNT(" in query["sql"]]
    assert all("LIMIT" in sql for sql in counts), counts
    assert len(seen) <= 8, [query["sql"] for query in seen]


@pytest.mark.parametrize(
    "model", [m for m in OURS if isinstance(admin.site._registry[m], ReadOnlyAdmin)], ids=lambda model: model.__name__
)
def test_rows_with_a_life_cycle_are_only_looked_at(operator, model):
    row = model.objects.first()

    assert operator.get(_url(model, "add")).status_code == 403
    assert operator.post(_url(model, "change", row.pk), {}).status_code == 403
    assert operator.post(_url(model, "delete", row.pk), {"post": "yes"}).status_code == 403


def test_live_tokens_are_not_shown(operator):
    job = Job.objects.get(status="running")

    assert str(job.lease_token).encode() not in operator.get(_url(Job, "change", job.pk)).content


def test_sealed_secrets_are_not_shown(operator):
    secret = WebhookSecret.objects.get()

    page = operator.get(_url(WebhookSecret, "change", secret.pk)).content
    assert secret.prefix.encode() in page
    assert secret.sealed.encode() not in page


def test_an_account_can_be_opened_and_signs_in(operator):
    made = operator.post(
        _url(User, "add"),
        {
            "email": "new@example.com",
            "full_name": "N",
            "password1": "one good password",
            "password2": "one good password",
            "usable_password": "true",
        },
    )

    assert made.status_code == 302, re.findall(rb"errorlist.*?</ul>", made.content)
    assert User.objects.get(email="new@example.com").check_password("one good password")


def test_pausing_in_the_admin_takes_the_queues_lock(operator):
    queue = Queue.objects.get(name="email")
    fields = {
        "name": "email",
        "priority": 0,
        "max_concurrency": 3,
        "max_concurrency_per_key": 1,
        "visibility_timeout_secs": 60,
        "is_paused": "on",
    }

    with CaptureQueriesContext(connection) as seen:
        answer = operator.post(_url(Queue, "change", queue.pk), fields)

    assert answer.status_code == 302
    queue.refresh_from_db()
    assert queue.is_paused
    statements = [query["sql"] for query in seen]
    locked = next(i for i, sql in enumerate(statements) if "pg_advisory_xact_lock" in sql)
    updated = next(i for i, sql in enumerate(statements) if sql.startswith('UPDATE "queues"'))
    assert locked < updated


def test_families_show_no_token(operator):
    family = RefreshFamily.objects.get()

    assert str(family.current_jti).encode() not in operator.get(_url(RefreshFamily, "change", family.pk)).content
