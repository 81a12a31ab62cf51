"""claim_gated: a queue's rate and the limits of its concurrency keys, counted from live leases."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db.models import F

from jobs.decisions import Succeeded
from jobs.lease import Lease
from jobs.lifecycle.claim import Claim, Want
from jobs.lifecycle.claim_gated import Gated, claim_gated
from jobs.models import Job
from orgs.models import TokenBucket
from queues.models import Queue
from scheduler_project.lib.errors import ValidationFailed
from scheduler_project.lib.ids import uuid7
from tests.factories import ANY_TYPE, claim_from, end, lapse, make_job, make_jobs, make_queue, reload

pytestmark = pytest.mark.django_db


def claim(queue: Queue, seats: int = 100) -> Gated:
    want = Want(str(queue.pk), seats, is_gated=True)
    return claim_gated(Claim(str(uuid7()), [want], ANY_TYPE, starts=1_000), want)


def keys_of(leases: list[Lease]) -> Counter[str | None]:
    keys = Job.objects.filter(pk__in=[lease.job_id for lease in leases]).values_list("concurrency_key", flat=True)
    return Counter(keys)


def test_a_queue_is_gated_from_its_first_key_or_with_a_rate(queue: Queue) -> None:
    assert reload_queue(queue).is_gated is False

    make_job(queue, concurrency_key="a")

    assert reload_queue(queue).is_gated is True
    assert reload_queue(make_queue(rate_limit=5, rate_period_secs=1)).is_gated is True


def test_the_plain_claim_leaves_gated_queues_alone(queue: Queue) -> None:
    make_job(queue, concurrency_key="a")

    assert claim_from(queue, 10) == []
    assert len(claim(queue).leases) == 1


def test_one_job_of_each_key_at_once_in_their_order_and_any_number_without_a_key(queue: Queue) -> None:
    first, second, other, *free = [make_job(queue, concurrency_key=key) for key in ("a", "a", "b", None, None)]

    leases = claim(queue).leases

    assert [lease.job_id for lease in leases] == [str(job.pk) for job in (first, other, *free)]
    assert claim(queue).leases == []
    end(leases[0], Succeeded())
    assert [lease.job_id for lease in claim(queue).leases] == [str(second.pk)]


def test_a_higher_limit_of_the_queue_lets_so_many_of_a_key_run(queue: Queue) -> None:
    make_jobs(queue, 10, concurrency_key="a")
    make_jobs(queue, 10, concurrency_key="b")
    Queue.objects.filter(pk=queue.pk).update(max_concurrency_per_key=3)

    assert keys_of(claim(queue).leases) == {"a": 3, "b": 3}
    assert claim(queue).leases == []


def test_a_full_key_with_many_jobs_does_not_hide_those_behind_it(queue: Queue) -> None:
    make_jobs(queue, 3_000, concurrency_key="flood", priority=5)
    last = make_job(queue, concurrency_key="other")
    assert keys_of(claim(queue).leases) == {"flood": 1}

    assert [lease.job_id for lease in claim(queue).leases] == [str(last.pk)]


def test_keys_are_each_queues_own(queue: Queue) -> None:
    other = make_queue(queue.project)
    for each in (queue, other):
        make_job(each, concurrency_key="a")

    assert len(claim(queue).leases) == len(claim(other).leases) == 1


def test_a_lapsed_lease_frees_its_key_only_when_it_was_reaped(queue: Queue) -> None:
    make_jobs(queue, 2, concurrency_key="a")
    [lease] = claim(queue).leases
    lapse(lease)
    assert claim(queue).leases == []


def test_room_and_keys_and_rate_hold_together(queue: Queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(max_concurrency=4, rate_limit=3, rate_period_secs=3_600)
    make_jobs(queue, 5, concurrency_key="a")
    make_jobs(queue, 5)

    assert keys_of(claim(queue, 10).leases) == {"a": 1, None: 2}
    gated = claim(queue, 10)
    assert gated.leases == []
    assert 1_100 < gated.wait_s <= 1_200


def test_a_rate_refills_with_the_databases_time(queue: Queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(rate_limit=10, rate_period_secs=10)
    make_jobs(queue, 30)
    assert len(claim(queue, 30).leases) == 10
    assert claim(queue, 30).leases == []

    TokenBucket.objects.filter(key=f"queue:{queue.pk}").update(refilled_at=F("refilled_at") - timedelta(seconds=4))

    assert len(claim(queue, 30).leases) == 4
    assert TokenBucket.objects.get(key=f"queue:{queue.pk}").tokens < 1


def test_seats_that_found_no_job_cost_no_tokens(queue: Queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(rate_limit=10, rate_period_secs=3_600)
    make_jobs(queue, 2)

    assert len(claim(queue, 10).leases) == 2

    assert 8 <= TokenBucket.objects.get(key=f"queue:{queue.pk}").tokens < 8.1


def test_a_paused_gated_queue_gives_nothing(queue: Queue) -> None:
    make_job(queue, concurrency_key="a")
    Queue.objects.filter(pk=queue.pk).update(is_paused=True)

    assert claim(queue).leases == []


def test_a_key_is_handed_to_the_job_that_comes_next_when_the_first_is_cancelled(queue: Queue) -> None:
    first, second = [make_job(queue, concurrency_key="a") for _ in range(2)]
    Job.claims.cancel(ids=[str(first.pk)], reason="")

    assert [lease.job_id for lease in claim(queue).leases] == [str(second.pk)]
    assert reload(first).status == "cancelled"


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb"])
def test_a_key_that_is_none_is_refused(queue: Queue, key: str) -> None:
    with pytest.raises(ValidationFailed, match="concurrency_key"):
        make_job(queue, concurrency_key=key)


def reload_queue(queue: Queue) -> Queue:
    return Queue.objects.get(pk=queue.pk)
