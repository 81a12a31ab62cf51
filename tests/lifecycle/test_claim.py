"""claim: which jobs a worker gets, in which order, and what it gets with them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.db.models.functions import Now

from jobs.decisions import Failed, Unbegun
from jobs.lease import Lease
from jobs.lifecycle.claim import HEAD, Claim, KnownTypes, Position, Want, claim_jobs, ready_queues
from jobs.models import Job
from orgs.models import Project
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import ANY_TYPE, claim_from, claim_one, end, make_due, make_job, make_jobs, make_queue, reload

pytestmark = pytest.mark.django_db


def claim(*wants: Want, types: KnownTypes = ANY_TYPE, starts: int = 1_000) -> list[Lease]:
    return claim_jobs(Claim(str(uuid7()), wants, types, starts))


def ids(leases: list[Lease]) -> list[str]:
    return [lease.job_id for lease in leases]


def behind(lease: Lease) -> Position:
    return Position(-lease.priority, lease.run_at, lease.job_id)


def test_an_empty_queue_gives_nothing(queue: Queue) -> None:
    assert claim_from(queue, 10) == []


def test_a_claim_fills_the_lease_and_hands_over_all_that_is_needed_to_run(queue: Queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(visibility_timeout_secs=77)
    job = make_job(queue, "mail", payload={"id": 12345678901234567890123}, priority=3, trace_id="t-1")
    worker_id = uuid7()

    lease = claim_one(queue, worker_id=worker_id)

    claimed = reload(job)
    assert claimed.status == "running"
    assert (claimed.locked_by, str(claimed.lease_token)) == (worker_id, lease.token)
    assert claimed.lease_expires_at is not None
    assert claimed.locked_at is not None
    assert claimed.lease_expires_at - claimed.locked_at == timedelta(seconds=77)
    assert (lease.job_id, lease.queue_id, lease.job_type) == (str(job.pk), str(queue.pk), "mail")
    assert json.loads(lease.payload_json) == {"id": 12345678901234567890123}
    assert (lease.attempt, lease.fencing_number, lease.lease_s, lease.trace_id) == (1, 1, 77, "t-1")
    assert (lease.is_running, lease.priority, lease.place) == (True, 3, 1)


def test_a_token_is_a_time_ordered_uuid_and_fresh_for_each_claim(queue: Queue) -> None:
    make_job(queue)

    tokens = []
    for _ in range(5):
        lease = claim_one(queue)
        tokens.append(UUID(lease.token))
        end(lease, Unbegun())

    assert len(set(tokens)) == 5
    assert {(token.version, token.variant) for token in tokens} == {(7, "specified in RFC 4122")}


def test_the_fencing_number_rises_with_every_claim_even_where_the_attempt_repeats(queue: Queue) -> None:
    make_job(queue)

    seen = []
    for verdict in (Unbegun(), Unbegun(), Failed("x", None, 0.0)):
        lease = claim_one(queue)
        seen.append((lease.fencing_number, lease.attempt))
        end(lease, verdict)

    make_due(lease.job_id)
    lease = claim_one(queue)
    assert [*seen, (lease.fencing_number, lease.attempt)] == [(1, 1), (2, 1), (3, 1), (4, 2)]


def test_urgent_jobs_come_first_then_the_longest_due_then_the_first_made(queue: Queue) -> None:
    late = make_job(queue)
    first, second = make_job(queue), make_job(queue)
    Job.objects.filter(pk__in=[first.pk, second.pk]).update(run_at=Now() - timedelta(hours=1))
    urgent, least = make_job(queue, priority=5), make_job(queue, priority=-5)
    Job.objects.filter(pk=least.pk).update(run_at=Now() - timedelta(days=9))

    claimed = ids(claim_from(queue, 10))

    assert claimed == [str(job.pk) for job in (urgent, first, second, late, least)]


def test_no_more_than_the_seats_are_claimed(queue: Queue) -> None:
    make_jobs(queue, 10)

    assert len(claim_from(queue, 4)) == 4
    assert Job.objects.in_flight().count() == 4
    assert claim_from(queue, 0) == []


def test_the_first_jobs_start_and_the_others_are_only_claimed(queue: Queue) -> None:
    make_jobs(queue, 5)

    leases = claim_from(queue, 5, starts=2)

    assert [lease.is_running for lease in leases] == [True, True, False, False, False]
    assert [reload(lease.job_id).status for lease in leases] == ["running"] * 2 + ["claimed"] * 3
    assert [lease.place for lease in leases] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("change", [{"is_paused": True}, {"deleted_at": Now()}])
def test_a_paused_or_deleted_queue_gives_nothing(queue: Queue, change: dict[str, Any]) -> None:
    make_job(queue)
    Queue.objects.filter(pk=queue.pk).update(**change)

    assert claim_from(queue, 5) == []
    assert ready_queues(None, ANY_TYPE) == []


@pytest.mark.parametrize("change", [{"is_paused": True}, {"deleted_at": Now()}])
def test_a_limited_queue_that_is_paused_or_deleted_gives_nothing_either(project: Project, change: Any) -> None:
    queue = make_queue(project, max_concurrency=5)
    make_job(queue)
    Queue.objects.filter(pk=queue.pk).update(**change)

    assert claim_from(queue, 5) == []


def test_a_paused_queue_does_not_keep_others_from_being_served(project: Project) -> None:
    paused, full, open_ = (
        make_queue(project, is_paused=True),
        make_queue(project, max_concurrency=1),
        make_queue(project),
    )
    for queue in (paused, full, full, open_):
        make_job(queue, priority=0 if queue == open_ else 100)
    claim_one(full)

    claimed = claim(Want(str(paused.pk), 9), Want(str(full.pk), 9), Want(str(open_.pk), 9))

    assert {lease.queue_id for lease in claimed} == {str(open_.pk)}


def test_only_job_types_with_a_handler_are_claimed(queue: Queue) -> None:
    for job_type in ("mail", "mail.welcome", "sleep_5", "sleepX5", "other", "percent%", "Mail"):
        make_job(queue, job_type)

    claimed = claim(Want(str(queue.pk), 99), types=KnownTypes.of(["mail", "percent%"], ["sleep_*"]))

    assert {lease.job_type for lease in claimed} == {"mail", "percent%", "sleep_5"}
    assert set(Job.objects.filter(status="queued").values_list("job_type", flat=True)) == {
        "mail.welcome", "sleepX5", "other", "Mail",
    }  # fmt: skip


def test_a_worker_without_handlers_claims_nothing(queue: Queue) -> None:
    make_job(queue)

    assert claim(Want(str(queue.pk), 5), types=KnownTypes.of([])) == []
    assert ready_queues(None, KnownTypes.of([])) == []


@pytest.mark.parametrize("status", sorted(set(Job.Status.values) - {"queued"}))
def test_only_queued_jobs_are_claimed(status: str) -> None:
    from tests.factories import job_in

    job, _ = job_in(status)

    assert claim_from(job.queue, 5) == []
    assert reload(job).status == status


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_a_limit_holds_over_claimed_and_running_jobs_of_all_workers(project: Project, limit: int) -> None:
    queue = make_queue(project, max_concurrency=limit)
    make_jobs(queue, 20)

    first = claim_from(queue, 10, starts=1)

    assert len(first) == limit
    assert claim_from(queue, 10) == []
    end(first[0], Unbegun())
    assert len(claim_from(queue, 10)) == 1


def test_a_limit_that_was_lowered_below_what_runs_gives_nothing_until_there_is_room(project: Project) -> None:
    queue = make_queue(project, max_concurrency=5)
    make_jobs(queue, 20)
    leases = claim_from(queue, 5)
    Queue.objects.filter(pk=queue.pk).update(max_concurrency=2)

    for lease in leases[:3]:
        end(lease, Unbegun())
        assert claim_from(queue, 5) == []

    end(leases[3], Unbegun())
    assert len(claim_from(queue, 5)) == 1


def test_limits_of_queues_claimed_together_do_not_mix(project: Project) -> None:
    queues = [make_queue(project, max_concurrency=limit) for limit in (1, 2, None, 4)]
    for queue in queues:
        make_jobs(queue, 6)

    claimed = claim(*[Want(str(queue.pk), 5) for queue in queues])

    assert [sum(lease.queue_id == str(queue.pk) for lease in claimed) for queue in queues] == [1, 2, 5, 4]


def test_a_claim_behind_a_position_goes_on_where_the_last_one_ended(queue: Queue) -> None:
    make_jobs(queue, 4, priority=2)
    make_jobs(queue, 4, priority=1)
    want = Want(str(queue.pk), 3)

    first = claim(want)
    second = claim(want._replace(position=behind(first[-1])))
    third = claim(want._replace(position=behind(second[-1])))

    everything = [str(pk) for pk in Job.objects.order_by("-priority", "run_at", "id").values_list("pk", flat=True)]
    assert ids(first) + ids(second) + ids(third) == everything


def test_what_lies_before_the_position_is_seen_only_from_the_head(queue: Queue) -> None:
    make_jobs(queue, 2)
    [last] = claim(Want(str(queue.pk), 1))
    urgent = make_job(queue, priority=9)
    behind_it = Want(str(queue.pk), 5, behind(last))

    assert str(urgent.pk) not in ids(claim(behind_it))
    assert ids(claim(behind_it._replace(position=HEAD))) == [str(urgent.pk)]


def test_each_queue_of_a_claim_has_its_own_position(project: Project) -> None:
    one, other = make_queue(project), make_queue(project)
    for queue in (one, other):
        make_jobs(queue, 3)
    [last] = claim(Want(str(one.pk), 1))

    claimed = claim(Want(str(one.pk), 5, behind(last)), Want(str(other.pk), 5))

    assert [lease.queue_id for lease in claimed].count(str(one.pk)) == 2
    assert [lease.queue_id for lease in claimed].count(str(other.pk)) == 3


def test_queues_of_several_projects_can_be_claimed_together() -> None:
    queues = [make_queue(), make_queue()]
    for queue in queues:
        make_jobs(queue, 2)

    claimed = claim(*[Want(str(queue.pk), 5) for queue in queues])

    assert {lease.queue_id for lease in claimed} == {str(queue.pk) for queue in queues}


def test_an_unknown_queue_gives_nothing(queue: Queue) -> None:
    make_job(queue)

    assert claim(Want(str(uuid7()), 5)) == []


def test_queues_are_ready_only_with_queued_jobs_of_a_known_type_and_room(project: Project) -> None:
    ready, empty, full = make_queue(project, priority=4), make_queue(project), make_queue(project, max_concurrency=1)
    other_type, only_scheduled = make_queue(project), make_queue(project)
    make_job(ready)
    make_jobs(full, 2)
    claim_one(full)
    make_job(other_type, "unheard.of")
    make_job(only_scheduled, delay_s=60)

    rows = ready_queues(None, KnownTypes.of(["noop"]))

    assert rows == [(str(ready.pk), str(project.pk), 4, False)]
    assert ready_queues([str(empty.pk)], ANY_TYPE) == []
    assert Job.objects.filter(queue=ready, updated_at=F("created_at")).count() == 1
