"""The specification's sample data (section 10): people, organizations, queues. Its jobs stand in ``sample_jobs``.

Loading it twice changes nothing. What a person has changed since stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from accounts.models import User
from jobs.services.sample_jobs import Places, load_history
from orgs.keys import PREFIX_CHARS, hash_key
from orgs.models import ApiKey, Organization, OrganizationMember, Project, Role
from queues.models import Queue, RetryPolicy
from scheduler_project.demo import DEMO_API_KEY, DEMO_PASSWORD

#: E-mail address, full name, role in Acme Corp.
PEOPLE = (
    ("admin@example.com", "Alice Admin", Role.OWNER),
    ("dev@example.com", "Bob Developer", Role.ADMIN),
    ("viewer@example.com", "Carol Viewer", Role.VIEWER),
)


@dataclass(frozen=True, slots=True)
class _Tenants:
    alice: User
    web_app: Project
    background: Project
    analytics: Project


@transaction.atomic
def load_sample_data() -> None:
    """Load what is missing of the sample data, all of it or nothing."""
    tenants = _load_tenants()
    _load_demo_key(tenants)
    load_history(_load_queues(tenants))


def _load_tenants() -> _Tenants:
    acme, _ = Organization.objects.get_or_create(slug="acme-corp", defaults={"name": "Acme Corp"})
    startup, _ = Organization.objects.get_or_create(slug="startup-inc", defaults={"name": "Startup Inc"})
    people = [_load_person(email, full_name) for email, full_name, _ in PEOPLE]
    for person, (_, _, role) in zip(people, PEOPLE, strict=True):
        OrganizationMember.objects.get_or_create(organization=acme, user=person, defaults={"role": role})
    alice = people[0]
    # Every organization has an owner; the other two can not see this one.
    OrganizationMember.objects.get_or_create(organization=startup, user=alice, defaults={"role": Role.OWNER})
    return _Tenants(
        alice,
        _load_project(acme, "web-app", "Web App", alice),
        _load_project(acme, "background-jobs", "Background Jobs", alice),
        _load_project(startup, "analytics-pipeline", "Analytics Pipeline", alice),
    )


def _load_person(email: str, full_name: str) -> User:
    found = User.objects.filter(email=email).first()
    if found is not None:
        return found
    if email == PEOPLE[0][0]:
        return User.objects.create_superuser(email, DEMO_PASSWORD, full_name=full_name)
    return User.objects.create_user(email, DEMO_PASSWORD, full_name=full_name)


def _load_project(organization: Organization, slug: str, name: str, by: User) -> Project:
    wanted = {"name": name, "created_by": by}
    project, _ = Project.objects.get_or_create(organization=organization, slug=slug, deleted_at=None, defaults=wanted)
    return project


def _load_demo_key(tenants: _Tenants) -> None:
    hashed = hash_key(DEMO_API_KEY)
    wanted = {"project": tenants.web_app, "name": "demo", "prefix": DEMO_API_KEY[:PREFIX_CHARS]}
    ApiKey.objects.get_or_create(key_hash=hashed, defaults={**wanted, "created_by": tenants.alice})
    Project.objects.filter(pk=tenants.web_app.pk, api_key_hash=None).update(api_key_hash=hashed)


def _load_queues(tenants: _Tenants) -> Places:
    persistent, _ = RetryPolicy.objects.get_or_create(
        project=tenants.background, name="persistent", defaults={"max_attempts": 10}
    )
    return Places(
        decided_by=tenants.alice.pk,
        default=_load_queue(tenants.web_app, "default", max_concurrency=5),
        high_priority=_load_queue(tenants.web_app, "high-priority", max_concurrency=10, priority=10),
        email=_load_queue(tenants.web_app, "email", max_concurrency=3),
        background=_load_queue(tenants.background, "default", default_retry_policy=persistent),
        analytics=_load_queue(tenants.analytics, "analytics", max_concurrency=2),
    )


def _load_queue(project: Project, name: str, **settings: Any) -> Queue:
    queue, _ = Queue.objects.get_or_create(project=project, name=name, deleted_at=None, defaults=settings)
    return queue
