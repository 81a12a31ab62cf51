"""submit: what becomes a job, and when nothing does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from jobs.lifecycle import placing
from jobs.lifecycle.submit import NewJob, submit_job, submit_jobs
from jobs.models import Job
from jobs.new_job import LATEST
from orgs.models import Project
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.errors import Conflict, ValidationFailed
from tests.factories import make_queue, reload

pytestmark = pytest.mark.django_db


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("select clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def fields_of(error: ValidationFailed) -> list[str]:
    return [detail.field for detail in error.details]


def test_a_job_is_queued_at_once_with_the_defaults(queue: Queue) -> None:
    submitted = submit_job(queue, NewJob(job_type="mail.welcome"))

    job = reload(submitted)
    assert (submitted.id, submitted.status, submitted.is_new) == (job.pk, "queued", True)
    assert (submitted.run_at, submitted.created_at) == (job.run_at, job.created_at)
    assert (job.status, job.job_type, job.payload, job.priority) == ("queued", "mail.welcome", {}, 0)
    assert (job.attempt_count, job.fencing_number, job.is_blocked) == (0, 0, False)
    assert (job.project_id, job.queue_id) == (queue.project_id, queue.pk)
    assert (job.lease_token, job.completed_at, job.result, job.error_message) == (None, None, None, None)
    assert job.run_at == job.created_at == job.updated_at


def test_everything_that_was_asked_for_is_stored(queue: Queue) -> None:
    policy = RetryPolicy.objects.create(project=queue.project, name="patient")
    run_at = datetime(2031, 5, 4, 3, 2, 1, 999_999, tzinfo=UTC)

    submitted = submit_job(
        queue,
        NewJob(
            job_type="mail", payload=[1], priority=-7, run_at=run_at, idempotency_key="k", retry_policy_id=policy.pk,
            max_attempts=9, trace_id="t-1",
        ),
    )  # fmt: skip

    job = reload(submitted)
    assert (job.payload, job.priority, job.run_at, job.idempotency_key) == ([1], -7, run_at, "k")
    assert (job.retry_policy_id, job.max_attempts_override, job.trace_id) == (policy.pk, 9, "t-1")


@pytest.mark.parametrize(("delay_s", "status"), [(0, "queued"), (0.5, "scheduled"), (86_400, "scheduled")])
def test_a_delay_counts_from_the_databases_now(queue: Queue, delay_s: float, status: str) -> None:
    before = database_now()

    job = reload(submit_job(queue, NewJob(job_type="x", delay_s=delay_s)))

    assert job.status == status
    assert before + timedelta(seconds=delay_s) <= job.run_at <= database_now() + timedelta(seconds=delay_s)


def test_a_time_to_come_makes_it_scheduled_and_a_past_one_queued(queue: Queue) -> None:
    now = database_now()

    soon = submit_job(queue, NewJob(job_type="x", run_at=now + timedelta(seconds=30)))
    late = submit_job(queue, NewJob(job_type="x", run_at=now - timedelta(days=400)))

    assert (soon.status, late.status) == ("scheduled", "queued")
    assert reload(late).run_at == now - timedelta(days=400)


def test_the_process_clock_has_no_say_in_what_is_due(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2001, 1, 1, tzinfo=tz)

    monkeypatch.setattr(placing, "datetime", Wrong)

    due = submit_job(queue, NewJob(job_type="x", run_at=database_now() - timedelta(seconds=1)))
    later = submit_job(queue, NewJob(job_type="x", run_at=database_now() + timedelta(hours=1)))

    assert (due.status, later.status) == ("queued", "scheduled")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu", "Africa/Monrovia"])
def test_times_of_any_zone_are_the_same_instant(queue: Queue, zone: str) -> None:
    run_at = datetime(1971, 6, 1, 12, 30, tzinfo=ZoneInfo(zone))

    assert reload(submit_job(queue, NewJob(job_type="x", run_at=run_at))).run_at == run_at


def test_many_jobs_are_answered_in_their_order_in_one_statement(queue: Queue) -> None:
    jobs = [NewJob(job_type=f"t{number}", payload={"n": number}, priority=number % 5) for number in range(300)]

    with CaptureQueriesContext(connection) as queries:
        answers = submit_jobs(queue, jobs)

    assert len(queries) == 1
    stored = Job.objects.in_bulk([answer.id for answer in answers])
    assert [stored[answer.id].payload["n"] for answer in answers] == list(range(300))
    assert [answer.id for answer in answers] == sorted(answer.id for answer in answers)


def test_no_jobs_make_nothing(queue: Queue) -> None:
    assert submit_jobs(queue, []) == []


@pytest.mark.django_db(transaction=True)
def test_a_submission_in_a_transaction_that_is_rolled_back_never_was(committed_queue: Queue) -> None:
    with transaction.atomic():
        submit_job(committed_queue, NewJob(job_type="x", idempotency_key="k"))
        assert Job.objects.count() == 1
        transaction.set_rollback(True)

    assert not Job.objects.exists()
    assert submit_job(committed_queue, NewJob(job_type="x", idempotency_key="k")).is_new


def test_a_deleted_queue_takes_no_jobs(queue: Queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(deleted_at=Now())
    queue.refresh_from_db()

    with pytest.raises(Conflict, match="was deleted"):
        submit_job(queue, NewJob(job_type="x"))

    assert not Job.objects.exists()


def test_a_paused_queue_takes_jobs(project: Project) -> None:
    assert submit_job(make_queue(project, is_paused=True), NewJob(job_type="x")).status == "queued"


HOSTILE: list[Any] = [
    {"x": "'); drop table jobs; --"}, {"x": "%s %(x)s %%"}, {"x": '{"}","{'}, {"x": "\\u0000 \\ \\\\ \\'"},
    {"x": "日本 🎈 \u202e e\u0301"}, {"x": "$$ $1 ; /* -- */ \n\r\t\x01"}, {"id": 12345678901234567890123},
    {"": ""}, None, "text", 0, False, [], [[[]]], {"a": {"b": [1.5, -0.25, 1e-7]}},
]  # fmt: skip


@pytest.mark.parametrize("payload", HOSTILE)
def test_payloads_are_stored_exactly_as_they_were_given(queue: Queue, payload: Any) -> None:
    assert reload(submit_job(queue, NewJob(job_type="x", payload=payload))).payload == payload


@pytest.mark.parametrize("text", ["a'b", "%s", "{}", '"', "\\", "日本", "k,k", "NULL"])
def test_keys_and_traces_are_stored_exactly_as_they_were_given(queue: Queue, text: str) -> None:
    job = reload(submit_job(queue, NewJob(job_type=text, idempotency_key=text, trace_id=text)))

    assert (job.job_type, job.idempotency_key, job.trace_id) == (text, text, text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("job_type", ""), ("job_type", "a b"), ("job_type", "a\n"), ("job_type", "x" * 201), ("job_type", "\0"),
        ("priority", 10_001), ("priority", -10_001), ("priority", 2**31),
        ("max_attempts", 0), ("max_attempts", 1_001), ("max_attempts", -1),
        ("idempotency_key", ""), ("idempotency_key", "k" * 256), ("idempotency_key", "a\0"),
        ("trace_id", "t" * 65), ("trace_id", "a\n"),
        ("run_at", datetime(2031, 1, 1)), ("run_at", LATEST), ("run_at", datetime(1969, 12, 31, tzinfo=UTC)),
        ("delay_s", -0.1), ("delay_s", float("nan")), ("delay_s", float("inf")), ("delay_s", 1e12),
        ("payload", {"x": float("nan")}), ("payload", {"x": "\0"}), ("payload", {1, 2}), ("payload", "x" * 1_100_000),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused_and_names_its_field(queue: Queue, field: str, value: Any) -> None:
    with pytest.raises(ValidationFailed) as caught:
        submit_job(queue, NewJob(**{"job_type": "x", field: value}))

    assert fields_of(caught.value) == [field]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [("job_type", "x" * 200), ("priority", 10_000), ("priority", -10_000), ("max_attempts", 1), ("max_attempts", 1_000),
     ("idempotency_key", "k" * 255), ("trace_id", "t" * 64), ("run_at", LATEST - timedelta(microseconds=1)),
     ("payload", "x" * (1024 * 1024 - 2))],
)  # fmt: skip
def test_what_just_fits_is_taken(queue: Queue, field: str, value: Any) -> None:
    job = reload(submit_job(queue, NewJob(**{"job_type": "x", field: value})))

    assert getattr(job, {"max_attempts": "max_attempts_override"}.get(field, field)) == value


def test_of_many_jobs_the_bad_fields_say_which_job_and_none_is_stored(queue: Queue) -> None:
    jobs = [NewJob(job_type="x") for _ in range(5)]
    jobs[1] = NewJob(job_type="", priority=99_999)
    jobs[3] = NewJob(job_type="x", run_at=datetime(2031, 1, 1), payload={"x": float("inf")})

    with pytest.raises(ValidationFailed) as caught:
        submit_jobs(queue, jobs)

    assert sorted(fields_of(caught.value)) == [
        "jobs[1].job_type",
        "jobs[1].priority",
        "jobs[3].payload",
        "jobs[3].run_at",
    ]
    assert "jobs[1].job_type" in caught.value.message
    assert not Job.objects.exists()
