"""Ended jobs past their retention move to the archive with all that hangs on them; the others stay."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import F

from dlq.models import DeadLetter
from jobs.decisions import Failed, Succeeded, Verdict
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.lifecycle.submit import NewJob, Parent, submit_job
from jobs.models import ArchivedJob, Job, JobDependency, JobExecution
from jobs.scheduler.duties import retain
from jobs.services.batches import add_jobs, create_batch
from jobs.services.retention import drop_old_months, run_retention
from orgs.models import Project
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, make_jobs, make_queue

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def old_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of these tests have the ids of a hundred days ago: retention looks no further than the ids of its day."""
    past = timedelta(days=100) // timedelta(milliseconds=1) << 80
    monkeypatch.setattr("jobs.lifecycle.submit.uuid7s", lambda n: [UUID(int=uuid7().int - past) for _ in range(n)])


def end_all(queue: Queue, verdict: Verdict) -> None:
    leases = claim_from(queue, 10_000)
    settle([Ending.of(lease, verdict, lease.job_id, 1.0) for lease in leases])


def age(days: int, **only: Any) -> None:
    past = {name: F(name) - timedelta(days=days) for name in ("created_at", "run_at", "updated_at")}
    Job.objects.filter(**only).update(**past)
    Job.objects.filter(completed_at__isnull=False, **only).update(completed_at=F("completed_at") - timedelta(days=days))


def test_old_ended_jobs_move_with_their_history_and_young_or_waiting_ones_stay(queue: Queue) -> None:
    make_jobs(queue, 1_200)
    end_all(queue, Succeeded('{"x": 1}'))
    age(31)
    make_jobs(queue, 3)
    end_all(queue, Succeeded())
    make_jobs(queue, 2)
    age(31, status="queued")

    assert run_retention() == 1_200

    assert ArchivedJob.objects.count() == 1_200
    first = ArchivedJob.objects.first()
    assert first is not None
    assert (first.status, first.result, first.attempt_count) == ("completed", {"x": 1}, 1)
    assert sorted(Job.objects.values_list("status", flat=True)) == ["completed"] * 3 + ["queued"] * 2
    assert JobExecution.objects.count() == 3


def test_project_with_a_retention_of_its_own_is_walked_by_it(queue: Queue) -> None:
    short, long = make_queue(), make_queue()
    Project.objects.filter(pk=short.project_id).update(retention_days=2)
    Project.objects.filter(pk=long.project_id).update(retention_days=90)
    for each in (queue, short, long):
        make_jobs(each, 2)
        end_all(each, Succeeded())
    age(3)
    assert run_retention() == 2
    age(40)

    assert run_retention() == 2

    assert set(Job.objects.values_list("queue_id", flat=True)) == {long.pk}


def test_dead_letter_keeps_its_snapshot_when_the_job_is_archived(queue: Queue) -> None:
    make_jobs(queue, 1, payload={"keep": "me"}, max_attempts=1)
    end_all(queue, Failed("no"))
    age(31)

    assert run_retention() == 1

    letter = DeadLetter.objects.get()
    assert letter.payload_snapshot == {"keep": "me"}
    assert ArchivedJob.objects.filter(pk=letter.job_id).exists()


def test_parent_of_a_waiting_job_stays_until_that_has_ended(queue: Queue) -> None:
    [parent] = make_jobs(queue, 1)
    [other] = make_jobs(queue, 1)
    child = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(parent.id), Parent(other.id)])).id
    settle([Ending.of(claim_from(queue, 1)[0], Succeeded(), str(parent.id), 1.0)])
    age(31)
    assert run_retention() == 0

    end_all(queue, Succeeded())
    end_all(queue, Succeeded())
    age(31)
    run_retention()

    assert not Job.objects.filter(pk__in=[parent.id, child]).exists()
    assert not JobDependency.objects.exists()


def test_jobs_of_a_running_batch_stay(queue: Queue) -> None:
    batch = create_batch(queue.project_id, "import")
    add_jobs(batch.pk, queue, [NewJob(job_type="noop")])
    end_all(queue, Succeeded())
    age(31)

    assert run_retention() == 0


def test_duty_works_in_short_rounds_until_all_is_walked(queue: Queue) -> None:
    make_jobs(queue, 1_200)
    end_all(queue, Succeeded())
    age(31)
    duty = retain.duty(600.0)

    while duty.run() is not None:
        pass

    assert ArchivedJob.objects.count() == 1_200


def test_months_past_their_retention_are_dropped(queue: Queue) -> None:
    with connection.cursor() as cursor:
        for parent in ("job_logs", "jobs_archive"):
            cursor.execute(
                f"create table {parent}_2020_01 partition of {parent} for values from ('2020-01-01') to ('2020-02-01')"
            )

    drop_old_months()

    with connection.cursor() as cursor:
        cursor.execute("select to_regclass('job_logs_2020_01'), to_regclass('jobs_archive_2020_01')")
        assert cursor.fetchone() == (None, None)
        cursor.execute("select count(*) from pg_inherits where inhparent = 'job_logs'::regclass")
        assert cursor.fetchone()[0] >= 4
