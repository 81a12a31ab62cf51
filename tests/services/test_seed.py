"""The sample data: what the specification lists, once."""

from __future__ import annotations

from collections import Counter

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from dlq.models import DeadLetter
from jobs.models import Job, JobBatch, JobExecution, JobLog, ScheduledJob
from jobs.services.dead_letters import resolve_letter
from orgs.models import OrganizationMember, Project
from queues.models import Queue, RetryPolicy
from scheduler_project.demo import DEMO_ACCOUNTS, DEMO_API_KEY, DEMO_PASSWORD, QUEUE
from tests.personas import Api, _without_collected_files  # noqa: F401


@pytest.fixture
def seeded(db):
    call_command("seed", verbosity=0)


def _rows() -> dict[str, int]:
    models = (
        User,
        OrganizationMember,
        Project,
        Queue,
        RetryPolicy,
        Job,
        JobExecution,
        JobLog,
        DeadLetter,
        ScheduledJob,
        JobBatch,
    )
    return {model.__name__: model.objects.count() for model in models}


def test_it_is_what_the_specification_lists(seeded):
    assert _rows() == {
        "User": 3,
        "OrganizationMember": 4,
        "Project": 3,
        "Queue": 5,
        "RetryPolicy": 1,
        "Job": 10,
        "JobExecution": 11,
        "JobLog": 7,
        "DeadLetter": 2,
        "ScheduledJob": 4,
        "JobBatch": 3,
    }
    assert Counter(Job.objects.values_list("status", flat=True)) == {
        "completed": 3, "queued": 1, "scheduled": 1, "running": 1, "failed": 2, "dead_letter": 1, "cancelled": 1,
    }  # fmt: skip
    assert set(DeadLetter.objects.values_list("failure_reason", flat=True)) == {"attempts exhausted", "lease expired"}
    assert sorted(JobBatch.objects.values_list("total_jobs", flat=True)) == [50, 100, 500]
    assert ScheduledJob.objects.filter(is_active=False).count() == 1
    assert RetryPolicy.objects.get().queues.get().project.slug == "background-jobs"


def test_queues_have_their_limits(seeded):
    found = set(Queue.objects.values_list("project__slug", "name", "max_concurrency", "priority"))

    assert found == {
        ("web-app", "default", 5, 0),
        ("web-app", "high-priority", 10, 10),
        ("web-app", "email", 3, 0),
        ("background-jobs", "default", None, 0),
        ("analytics-pipeline", "analytics", 2, 0),
    }


def test_loading_it_twice_changes_nothing(seeded):
    before, stamps = _rows(), list(Job.objects.order_by("id").values())

    call_command("seed", verbosity=0)

    assert _rows() == before
    assert list(Job.objects.order_by("id").values()) == stamps


def test_the_accounts_sign_in_with_their_roles(seeded):
    roles = {}
    for email, _ in DEMO_ACCOUNTS:
        answer = Api().post("auth/login", {"email": email, "password": DEMO_PASSWORD})
        api = Api(Authorization=f"Bearer {answer.json()['access']}")
        roles[email] = {item["slug"]: item["role"] for item in api.get("organizations").json()["items"]}

    assert roles == {
        "admin@example.com": {"acme-corp": "owner", "startup-inc": "owner"},
        "dev@example.com": {"acme-corp": "admin"},
        "viewer@example.com": {"acme-corp": "viewer"},
    }
    alice = User.objects.get(email="admin@example.com")
    assert (alice.is_staff, alice.is_superuser) == (True, True)


def test_the_published_key_submits_to_the_published_queue(seeded):
    answer = Api(key=DEMO_API_KEY).post("jobs", {"queue": QUEUE, "job_type": "test.echo"})

    assert answer.status_code == 201


def test_real_jobs_are_newer_than_the_samples(seeded):
    api = Api(key=DEMO_API_KEY)
    made = api.post("jobs", {"queue": QUEUE, "job_type": "test.echo"}).json()

    assert api.get("jobs").json()["items"][0]["id"] == made["id"]


def test_both_letters_can_be_requeued(seeded):
    for letter in DeadLetter.objects.select_related("queue"):
        resolve_letter(letter, "requeued", by=None)

    assert Job.objects.filter(status="queued").count() == 3


def test_it_is_refused_in_production(db, settings):
    settings.IS_PRODUCTION = True

    with pytest.raises(CommandError, match="production"):
        call_command("seed")
    assert not User.objects.exists()


def test_it_says_what_it_did(db, capsys):
    call_command("seed")

    assert "admin@example.com" in capsys.readouterr().out
