"""An organization with one of each thing, all of it marked, and the strangers who must see none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from accounts.models import User
from accounts.tokens import issue
from dlq.models import DeadLetter
from jobs.decisions import Failed
from jobs.lease import Ending
from jobs.lifecycle.claim import Claim, KnownTypes, Want, claim_jobs
from jobs.lifecycle.settle import settle
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import CircuitBreaker, Worker
from jobs.services.batches import create_batch
from jobs.services.operations import NewOperation, prepare, start
from jobs.services.schedules import create_schedule
from orgs.models import ApiKey, Organization, OrganizationMember, Project, Role
from orgs.services import create_api_key
from orgs.webhook_secrets import create_secret
from queues.models import Queue
from queues.services import create_retry_policy

#: Stands in every name, payload and message of the tenant; nobody else may ever read it.
MARK = "tenants-mark-7f3a"


@dataclass(slots=True)
class Visitor:
    """Somebody who sends requests: his client, and what it sends along to the API."""

    name: str
    client: Client
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tenant:
    """The organization: its owner, and what stands for the placeholders of paths."""

    owner: Visitor
    project: Project
    ids: Mapping[str, str]
    queries: Sequence[str]
    bodies: Sequence[Mapping[str, Any]]


def make_tenant() -> Tenant:
    """One of each thing."""
    organization = Organization.objects.create(name=f"{MARK} org", slug="tenant-org")
    project = Project.objects.create(organization=organization, name=f"{MARK} project", slug="tenant-project")
    queue = Queue.objects.create(project=project, name=f"{MARK}-queue")
    owner = User.objects.create_user(f"{MARK}@example.com")
    member = OrganizationMember.objects.create(organization=organization, user=owner, role=Role.OWNER)
    dead = submit_job(queue, NewJob(job_type="noop", payload={"text": MARK}, max_attempts=1)).id
    worker = Worker.objects.create(project=project, hostname=MARK, pid=1, version="1", max_concurrency=1)
    [lease] = claim_jobs(Claim(str(worker.pk), [Want(str(queue.pk), 1)], KnownTypes.of([], ["*"]), 1))
    settle([Ending.of(lease, Failed(MARK), str(worker.pk), 1.0)])
    job = submit_job(queue, NewJob(job_type="noop", payload={"text": MARK}))
    operation, _ = prepare(project, NewOperation(action="cancel", filter={}, reason=MARK))
    ids = {
        "org_slug": organization.slug,
        "project_slug": project.slug,
        "org_id": organization.pk,
        "project_id": project.pk,
        "queue_id": queue.pk,
        "job_id": job.id,
        "letter_id": DeadLetter.objects.get(job_id=dead).pk,
        "schedule_id": create_schedule(queue, name=MARK, cron_expression="0 0 1 1 *", job_type="noop").pk,
        "policy_id": create_retry_policy(project, name=MARK).pk,
        "breaker_id": CircuitBreaker.objects.create(project_id=project.pk, name=MARK, state="open").pk,
        "operation_id": start(operation, by=owner.pk, api_key_id=None).pk,
        "batch_id": create_batch(project.pk, MARK).pk,
        "key_id": create_api_key(project, name=MARK, by=None).row.pk,
        "secret_id": create_secret(project, by=None).row.pk,
        "member_id": member.pk,
        "worker_id": worker.pk,
    }
    text = {name: str(value) for name, value in ids.items()}
    queries = [f"?{name}={text[name]}" for name in ("project_id", "queue_id", "org_id")]
    return Tenant(_signed_in("owner", owner), project, text, ["", *queries], _bodies(text))


def make_strangers(tenant: Tenant) -> list[Visitor]:
    """Nobody; the owner of another organization; a key of another project; one who was a member until now."""
    organization = Organization.objects.create(name="Other", slug="other-org")
    project = Project.objects.create(organization=organization, name="Other", slug="other-project")
    other = User.objects.create_user("other@example.com")
    OrganizationMember.objects.create(organization=organization, user=other, role=Role.OWNER)
    former = User.objects.create_user("former@example.com")
    gone = OrganizationMember.objects.create(organization=tenant.project.organization, user=former, role=Role.ADMIN)
    former_visitor = _signed_in("former member", former)
    gone.delete()
    key = create_api_key(project, name="k", by=None, scope=ApiKey.Scope.MANAGE).key
    return [
        Visitor("anonymous", _client()),
        _signed_in("owner of another organization", other),
        former_visitor,
        Visitor("key of another project", _client(), {"X-API-Key": key}),
    ]


def _client() -> Client:
    return Client(raise_request_exception=False)


def _signed_in(name: str, user: User) -> Visitor:
    client = _client()
    client.force_login(user)
    return Visitor(name, client, {"Authorization": f"Bearer {issue(user).access}"})


def _bodies(ids: Mapping[str, str]) -> list[dict[str, Any]]:
    """Nothing; and what would make, move or end something of the tenant."""
    job = {"queue_id": ids["queue_id"], "job_type": "noop"}
    return [
        {},
        job,
        {"jobs": [job]},
        {"project_id": ids["project_id"], "name": "x"},
        {"org_id": ids["org_id"], "name": "x"},
        {"project_id": ids["project_id"], "action": "cancel", "filter": {}},
        {"action": "discarded"},
        {"email": "other@example.com", "role": "viewer"},
    ]
