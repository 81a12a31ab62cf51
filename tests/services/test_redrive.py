"""redrive: the jobs of many dead letters are queued again together."""

from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries

from dlq.models import DeadLetter
from dlq.services import discard
from jobs.models import Job
from jobs.services.dead_letters import redrive
from queues.models import Queue
from tests.factories import job_in, reload

pytestmark = pytest.mark.django_db


def letter_of(queue: Queue) -> DeadLetter:
    return DeadLetter.objects.get(job_id=job_in("dead_letter", queue, payload={"n": 1}).job.pk)


def test_jobs_that_were_purged_come_as_new_ones_and_what_was_decided_stays(queue: Queue) -> None:
    kept, purged, discarded = (letter_of(queue) for _ in range(3))
    Job.objects.filter(pk=purged.job_id).delete()
    discard(discarded.pk, by=None)

    again = redrive([kept.pk, purged.pk, discarded.pk], by=None)

    assert len(again) == 2
    assert {(reload(id_).status, reload(id_).payload["n"]) for id_ in again} == {("queued", 1)}
    assert (kept.job_id in again, purged.job_id in again) == (True, False)
    assert reload(discarded.job_id).status == "dead_letter"
    assert redrive([kept.pk, purged.pk, discarded.pk], by=None) == []


@pytest.mark.parametrize("count", [1, 30])
def test_many_letters_take_no_more_statements_than_one(
    queue: Queue, count: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    letters = [letter_of(queue).pk for _ in range(count)]

    with django_assert_max_num_queries(11):
        assert len(redrive(letters, by=None)) == count
