"""submit with idempotency keys: the second submission returns the first job."""

from __future__ import annotations

import pytest

from jobs.decisions import Succeeded
from jobs.lifecycle.submit import NewJob, submit_job, submit_jobs
from jobs.models import Job
from orgs.models import Project
from queues.models import Queue
from tests.factories import claim_one, end, job_in, make_queue, reload

pytestmark = pytest.mark.django_db


def new(key: str | None, **fields: object) -> NewJob:
    return NewJob(job_type="x", idempotency_key=key, **fields)  # type: ignore[arg-type]


def test_the_second_submission_of_a_key_returns_the_first_job(queue: Queue) -> None:
    first = submit_job(queue, new("k", payload={"n": 1}))

    second = submit_job(queue, new("k", payload={"n": 2}))

    assert (second.id, second.is_new) == (first.id, False)
    assert [job.payload for job in Job.objects.all()] == [{"n": 1}]


def test_the_answer_tells_the_first_jobs_state_of_now(queue: Queue) -> None:
    submit_job(queue, new("k"))
    end(claim_one(queue), Succeeded())

    assert submit_job(queue, new("k")).status == "completed"


@pytest.mark.parametrize("status", Job.Status.values)
def test_a_key_is_taken_whatever_became_of_its_job(status: str) -> None:
    job, _ = job_in(status, idempotency_key="k")

    again = submit_job(job.queue, new("k"))

    assert (again.id, again.status, again.is_new) == (job.pk, status, False)
    assert reload(job).updated_at == job.updated_at


def test_one_key_twice_in_one_batch_is_one_job(queue: Queue) -> None:
    answers = submit_jobs(queue, [new("k", priority=1), new("other"), new("k", priority=2), new(None), new("k")])

    assert [answer.is_new for answer in answers] == [True, True, False, True, False]
    assert answers[0].id == answers[2].id == answers[4].id
    assert Job.objects.count() == 3
    assert reload(answers[0]).priority == 1


def test_a_batch_finds_keys_of_earlier_jobs_and_makes_the_rest(queue: Queue) -> None:
    earlier = [submit_job(queue, new(f"k{n}")).id for n in range(3)]

    answers = submit_jobs(queue, [new(f"k{n}") for n in range(6)])

    assert [answer.id for answer in answers][:3] == earlier
    assert [answer.is_new for answer in answers] == [False] * 3 + [True] * 3


def test_jobs_without_a_key_are_never_the_same(queue: Queue) -> None:
    assert len({submit_job(queue, new(None)).id for _ in range(3)}) == 3


def test_a_key_belongs_to_its_queue(project: Project) -> None:
    one, other = make_queue(project), make_queue(project)

    assert submit_job(one, new("k")).id != submit_job(other, new("k")).id


@pytest.mark.parametrize("other", ["K", "k ", " k", "ḱ", "kk"])
def test_keys_that_only_look_alike_are_different(queue: Queue, other: str) -> None:
    first = submit_job(queue, new("k"))

    assert submit_job(queue, new(other)).id != first.id
