"""Submissions take the cheapest statement that will do; whichever it is, the rows and the counts are the same."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from jobs.lifecycle.graph import After, Node, submit_graph
from jobs.lifecycle.submit import NewJob, Parent, Submitted, submit_jobs, submit_to_queues
from jobs.lifecycle.submit_unseen import Address, can_go_unseen, submit_unseen
from jobs.models import Job, JobBatch, JobStatDelta
from orgs.models import Project
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.errors import ValidationFailed
from scheduler_project.lib.sql import database_now
from tests.factories import make_project, make_queue, reload

pytestmark = pytest.mark.django_db

PLAIN, AT_ONCE, ANY, UNSEEN = "submit_plain", "submit_at_once", "submit", "submit_unseen"


def way_of(queries: CaptureQueriesContext) -> list[str]:
    """The names of the statements that inserted jobs."""
    texts = [query["sql"] for query in queries if "insert into jobs " in query["sql"]]
    return [text.split("/* ")[1].split(" */")[0] for text in texts]


def submit_by(way: str, queue: Queue, *jobs: NewJob) -> list[Submitted]:
    with CaptureQueriesContext(connection) as queries:
        answers = submit_jobs(queue, jobs)
    assert way_of(queries) == [way]
    return answers


def stored(job: Job) -> dict[str, Any]:
    """All that one submission of the same job could have in common with another."""
    own = {"id", "created_at", "updated_at", "run_at"}
    return {f.attname: getattr(job, f.attname) for f in Job._meta.concrete_fields if f.attname not in own}


def counted() -> Counter[tuple[UUID, UUID, str]]:
    found: Counter[tuple[UUID, UUID, str]] = Counter()
    for project_id, queue_id, job_type, created in JobStatDelta.objects.values_list(
        "project_id", "queue_id", "job_type", "created"
    ):
        found[project_id, queue_id, job_type] += created
    return found


def wishes(queue: Queue) -> dict[str, Any]:
    """Something for each column that a submission may fill, of a job that is due at once."""
    later = database_now() + timedelta(hours=1)
    return {
        "payload": {"it's": ["{}", '"', "\\", "NULL", None]},
        "priority": -7,
        "trace_id": "t-1",
        "concurrency_key": "c,{}",
        "retry_policy_id": RetryPolicy.objects.create(project=queue.project, name=f"p-{later}").pk,
        "max_attempts": 9,
        "timeout_s": 1.5,
        "start_deadline": later,
        "deadline": later + timedelta(hours=1),
        "batch_id": JobBatch.objects.create(project=queue.project, name="b").pk,
    }


def test_one_job_without_wishes_is_the_same_by_every_way(queue: Queue) -> None:
    job = NewJob(job_type="mail", payload={"a": [1, "x'"]}, priority=3, trace_id="t")

    [plain] = submit_by(PLAIN, queue, job)
    bulk = submit_by(AT_ONCE, queue, job, job)
    [(queue_id, unseen)] = [submit_unseen(Address(queue.project_id, queue.pk), job) or pytest.fail("no queue")]

    assert queue_id == queue.pk
    for answer in (plain, *bulk, unseen):
        row = reload(answer)
        assert (answer.status, answer.run_at, answer.created_at, answer.is_new) == (
            "queued", row.run_at, row.created_at, True,
        )  # fmt: skip
        assert row.run_at == row.created_at == row.updated_at
        assert stored(row) == stored(reload(plain))
    assert counted() == {(queue.project_id, queue.pk, "mail"): 4}


def test_wishes_are_stored_by_both_ways_that_take_them(queue: Queue) -> None:
    job = NewJob(job_type="mail", **wishes(queue))
    other = NewJob(job_type="mail", payload=1)

    [alone] = submit_by(AT_ONCE, queue, job)
    at_once = submit_by(AT_ONCE, queue, other, job, other)
    among_keys = submit_by(ANY, queue, job, NewJob(job_type="mail", idempotency_key="k"))

    row = stored(reload(alone))
    for name, value in wishes(queue).items():
        if name not in ("retry_policy_id", "batch_id", "start_deadline", "deadline"):
            assert row[{"max_attempts": "max_attempts_override"}.get(name, name)] == value, name
    assert (row["retry_policy_id"], row["batch_id"]) == (job.retry_policy_id, job.batch_id)
    assert (row["start_deadline"], row["deadline"]) == (job.start_deadline, job.deadline)
    assert stored(reload(at_once[1])) == stored(reload(among_keys[0])) == row
    assert [reload(at_once[i]).payload for i in (0, 2)] == [1, 1]
    assert counted() == {(queue.project_id, queue.pk, "mail"): 6}


def test_each_wish_alone_keeps_a_job_from_the_plain_way(queue: Queue) -> None:
    for name, value in wishes(queue).items():
        if name not in ("payload", "priority", "trace_id"):
            submit_by(AT_ONCE, queue, NewJob(job_type="x", **{name: value}))
    for job in (NewJob(job_type="x", run_at=database_now()), NewJob(job_type="x", delay_s=1)):
        submit_by(ANY, queue, job)
    submit_by(UNSEEN, queue, NewJob(job_type="x", idempotency_key="k"))


def test_jobs_of_several_queues_and_types_go_and_count_where_they_belong(queue: Queue, project: Project) -> None:
    second = make_queue(project)
    wanted = [(queue, "a"), (second, "a"), (queue, "b"), (queue, "a"), (second, "c")]

    answers = submit_to_queues([(to, NewJob(job_type=job_type)) for to, job_type in wanted])

    rows = [reload(answer) for answer in answers]
    assert [(row.queue_id, row.project_id, row.job_type) for row in rows] == [
        (to.pk, project.pk, job_type) for to, job_type in wanted
    ]
    assert counted() == Counter((project.pk, to.pk, job_type) for to, job_type in wanted)


def test_of_jobs_that_are_due_at_once_and_later_each_is_what_it_is(queue: Queue) -> None:
    soon, now = submit_by(ANY, queue, NewJob(job_type="x", delay_s=60), NewJob(job_type="x"))

    assert (soon.status, now.status) == (reload(soon).status, reload(now).status) == ("scheduled", "queued")


def test_a_job_that_others_wait_for_says_so_by_every_way(queue: Queue) -> None:
    job = NewJob(job_type="x")
    with CaptureQueriesContext(connection) as queries:
        found = submit_graph([Node("a", queue, job), Node("b", queue, job, [After("a")])])

    assert way_of(queries) == [ANY]
    assert [(reload(found[name]).has_dependants, reload(found[name]).is_blocked) for name in "ab"] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize(("named", "is_found"), [("name", True), ("id", True), ("wrong name", False)])
def test_a_queue_is_found_by_its_id_or_its_name(queue: Queue, named: str, is_found: bool) -> None:
    addresses = {
        "name": Address(queue.project_id, name=queue.name),
        "id": Address(queue.project_id, queue_id=queue.pk),
        "wrong name": Address(queue.project_id, name=queue.name + "x"),
    }

    found = submit_unseen(addresses[named], NewJob(job_type="x"))

    assert (found is not None) == is_found == Job.objects.filter(queue=queue).exists() == bool(counted())


@pytest.mark.parametrize("way", ["id", "name"])
def test_no_job_and_no_count_comes_to_a_queue_that_is_deleted_or_of_another_project(queue: Queue, way: str) -> None:
    foreign = make_queue(make_project(queue.project.organization))
    Queue.objects.filter(pk=queue.pk).update(deleted_at=Now())

    for one in (foreign, queue):
        where = Address(queue.project_id, one.pk) if way == "id" else Address(queue.project_id, name=one.name)
        assert submit_unseen(where, NewJob(job_type="x")) is None

    assert not Job.objects.exists()
    assert not counted()


def test_a_key_counts_among_those_that_go_unseen_and_those_that_do_not(queue: Queue) -> None:
    job, address = NewJob(job_type="x", idempotency_key="k'"), Address(queue.project_id, queue.pk)

    first = submit_unseen(address, job)
    assert first is not None
    assert submit_unseen(address, job) is None
    [again] = submit_jobs(queue, [job])
    other = submit_unseen(address, NewJob(job_type="x", idempotency_key="l"))

    assert (again.id, again.is_new, reload(again).idempotency_key) == (first[1].id, False, "k'")
    assert other is not None
    assert (
        counted() == {(queue.project_id, queue.pk, "x"): Job.objects.count()} == {(queue.project_id, queue.pk, "x"): 2}
    )


def test_what_can_not_be_is_refused_before_the_queue_is_found(queue: Queue) -> None:
    with pytest.raises(ValidationFailed) as caught:
        submit_unseen(Address(queue.project_id, queue.pk), NewJob(job_type="", priority=99_999))

    assert sorted(detail.field for detail in caught.value.details) == ["job_type", "priority"]
    assert not Job.objects.exists()


def test_only_what_takes_no_look_at_other_rows_goes_unseen(queue: Queue) -> None:
    assert can_go_unseen(NewJob(job_type="x", payload=[1], priority=1, trace_id="t"))
    assert can_go_unseen(NewJob(job_type="x", idempotency_key="k"))
    assert not can_go_unseen(NewJob(job_type="x", concurrency_key="k"))
    assert not can_go_unseen(NewJob(job_type="x", delay_s=1))
    [parent] = submit_by(PLAIN, queue, NewJob(job_type="x"))
    assert not can_go_unseen(NewJob(job_type="x", depends_on=[Parent(parent.id)]))
