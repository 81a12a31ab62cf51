"""What /readyz says of the work: ready, degraded with the reasons, or stalled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from jobs.models import Job, LeaderTerm, ScheduledJob, Worker
from jobs.services.schedules import create_schedule
from queues.models import Queue
from scheduler_project import health
from tests.factories import claim_one, make_job

Ask = Callable[[], tuple[int, str, list[str]]]


@pytest.fixture
def ready(db: None) -> Ask:
    """Asks; each time anew."""

    def ask() -> tuple[int, str, list[str]]:
        health.kept.forget()
        answer = Client().get("/readyz")
        body = answer.json()
        return answer.status_code, body["status"], body["reasons"]

    return ask


@pytest.fixture
def in_order(db: None) -> None:
    """A leader and a worker."""
    LeaderTerm.objects.create(hostname="h", pid=1, backend_pid=1)
    Worker.objects.create(hostname="h", pid=2, version="x", max_concurrency=1)


def long_ago(job: Job, **more: Any) -> None:
    Job.objects.filter(pk=job.pk).update(run_at=Now() - timedelta(minutes=5), **more)


def test_ready(ready: Ask, in_order: None, queue: Queue) -> None:
    make_job(queue)
    assert ready() == (200, "ready", [])


def test_without_a_leader_it_is_degraded(ready: Ask) -> None:
    assert ready() == (200, "degraded", ["no_leader"])


def test_a_leader_that_fell_silent_is_none(ready: Ask, in_order: None) -> None:
    LeaderTerm.objects.update(renewed_at=Now() - timedelta(minutes=1))
    assert ready() == (200, "degraded", ["no_leader"])


def test_what_is_late_is_named(ready: Ask, in_order: None, queue: Queue) -> None:
    due = make_job(queue, delay_s=60)
    long_ago(due)
    create_schedule(queue, name="s", cron_expression="0 3 * * *", job_type="noop")
    ScheduledJob.objects.update(next_run_at=Now() - timedelta(minutes=5))
    assert ready() == (200, "degraded", ["due_jobs_late", "schedules_late"])


def test_a_lease_that_nobody_ends_is_named(ready: Ask, in_order: None, queue: Queue) -> None:
    job = make_job(queue)
    claim_one(queue)
    assert ready() == (200, "ready", [])
    Job.objects.filter(pk=job.pk).update(lease_expires_at=Now() - timedelta(minutes=5))
    assert ready() == (200, "degraded", ["leases_lapsed"])


def test_work_that_nobody_does_is_stalled(ready: Ask, in_order: None, queue: Queue) -> None:
    long_ago(make_job(queue))
    assert ready() == (200, "stalled", ["nothing_is_claimed"])
    Worker.objects.update(status="stopped")
    assert ready() == (200, "stalled", ["nothing_is_claimed", "queue_without_worker"])


def test_workers_that_are_full_are_not_stalled(ready: Ask, in_order: None, queue: Queue) -> None:
    make_job(queue)
    claim_one(queue)
    long_ago(make_job(queue))
    assert ready() == (200, "ready", [])


def test_a_queue_that_only_nobody_serves_is_degraded(ready: Ask, in_order: None, queue: Queue) -> None:
    make_job(queue)
    claim_one(queue)
    long_ago(make_job(queue))
    Worker.objects.update(subscribed_queues=["another/one/*"])
    assert ready() == (200, "degraded", ["queue_without_worker"])


def test_a_paused_queue_and_an_open_circuit_are_meant_to_wait(ready: Ask, in_order: None, queue: Queue) -> None:
    job = make_job(queue)
    long_ago(job, circuit="http.webhook shop:443")
    assert ready() == (200, "ready", [])
    long_ago(job, circuit=None)
    Queue.objects.update(is_paused=True)
    assert ready() == (200, "ready", [])


def test_the_answer_names_nothing_of_a_customer(ready: Ask, queue: Queue) -> None:
    long_ago(make_job(queue))
    health.kept.forget()
    assert queue.name.encode() not in Client().get("/readyz").content


def test_it_looks_once_in_a_moment(in_order: None, django_assert_num_queries: Any) -> None:
    health.kept.forget()
    Client().get("/readyz")
    with django_assert_num_queries(0):
        assert Client().get("/readyz").json()["status"] == "ready"
