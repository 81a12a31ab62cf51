"""One key, one job, whoever comes first."""

from __future__ import annotations

from functools import partial

import pytest
from django.db import connection, transaction

from jobs.lifecycle.submit import NewJob, Submitted, submit_job, submit_jobs
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.errors import Conflict
from tests.races import at_once, wait_for_waiters
from tests.threads import Session, run_together

pytestmark = pytest.mark.django_db(transaction=True)


def submit(queue: Queue, key: str = "k") -> Submitted:
    return submit_job(queue, NewJob(job_type="x", idempotency_key=key))


def test_sixteen_submissions_of_one_key_make_one_job_and_all_hear_of_it(committed_queue: Queue) -> None:
    for round_ in range(10):
        answers = run_together([partial(submit, committed_queue, f"k{round_}")] * 16)

        assert len({answer.id for answer in answers}) == 1
        assert [answer.is_new for answer in answers].count(True) == 1

    assert Job.objects.count() == 10


def test_batches_that_share_keys_in_different_orders_make_each_job_once(committed_queue: Queue) -> None:
    for round_ in range(3):
        keys = [f"{round_}.{n}" for n in range(400)]

        def submit_all(order: int, keys: list[str] = keys) -> dict[str, object]:
            mine = keys[order:] + keys[:order] if order % 2 else list(reversed(keys))
            answers = submit_jobs(committed_queue, [NewJob(job_type="x", idempotency_key=key) for key in mine])
            return {key: answer.id for key, answer in zip(mine, answers, strict=True)}

        outcomes = at_once(*[partial(submit_all, n * 45) for n in range(8)])

        for outcome in outcomes:
            assert outcome == outcomes[0], "every client is answered, with the same jobs"

    assert Job.objects.count() == 3 * 400


def test_batches_that_share_keys_in_opposite_orders_do_not_wait_for_each_other_in_a_circle(
    committed_queue: Queue,
) -> None:
    def submit_keys(keys: str) -> dict[str, object]:
        answers = submit_jobs(committed_queue, [NewJob(job_type="x", idempotency_key=key) for key in keys])
        return {key: answer.id for key, answer in zip(keys, answers, strict=True)}

    with Session() as holder, Session() as one, Session() as other:
        holder.open_transaction()
        holder(partial(submit, committed_queue, "m"))
        # Each could now insert its first key and then wait at "m", which is held.
        forth = one.begin(partial(submit_keys, "amz"))
        wait_for_waiters(1)
        back = other.begin(partial(submit_keys, "zma"))
        wait_for_waiters(2)

        holder.rollback()

        assert forth.result(10) == back.result(10)
    assert Job.objects.count() == 3


def test_a_submission_waits_for_an_earlier_one_of_its_key_and_returns_its_job(committed_queue: Queue) -> None:
    with Session() as first, Session() as second:
        first.open_transaction()
        earlier = first(partial(submit, committed_queue))
        later = second.begin(partial(submit, committed_queue))
        wait_for_waiters(1)

        first.commit()

        answer = later.result(10)
    assert (answer.id, answer.status, answer.is_new) == (earlier.id, earlier.status, False)


def test_if_the_earlier_one_is_rolled_back_the_waiting_one_is_the_first(committed_queue: Queue) -> None:
    with Session() as first, Session() as second:
        first.open_transaction()
        earlier = first(partial(submit, committed_queue))
        later = second.begin(partial(submit, committed_queue))
        wait_for_waiters(1)

        first.rollback()
        answer = later.result(10)

    assert answer.is_new
    assert answer.id != earlier.id
    assert Job.objects.get().pk == answer.id


def test_an_old_snapshot_gets_a_clear_refusal_and_never_a_second_job(committed_queue: Queue) -> None:
    def submit_from_an_old_snapshot() -> Submitted:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("set transaction isolation level repeatable read")
            assert Job.objects.count() == 0
            other(partial(submit, committed_queue))
            return submit(committed_queue)

    with Session() as other, pytest.raises(Exception) as caught:  # noqa: PT011 - either of two
        submit_from_an_old_snapshot()

    assert isinstance(caught.value, Conflict) or "could not serialize" in str(caught.value)
    assert Job.objects.count() == 1
