"""exchange: one round trip, one transaction, in the right order."""

from __future__ import annotations

import time

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from jobs.decisions import Failed, Succeeded
from jobs.lease import Ending, Lease
from jobs.lifecycle.claim import Claim, Want
from jobs.lifecycle.exchange import Handover, LogLine, Progress, Takeaway, exchange
from jobs.models import Job, JobExecution, JobLog
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import ANY_TYPE, claim_from, make_jobs, make_queue, reload

pytestmark = pytest.mark.django_db


def line(lease: Lease, message: str = "hello", *, ago_s: float = 0.0, level: str = "info") -> LogLine:
    return LogLine(lease.job_id, lease.token, 100.0 - ago_s, level, message)


def ending(lease: Lease, verdict: Succeeded | Failed | None = None) -> Ending:
    return Ending.of(lease, verdict or Succeeded(), str(uuid7()), 1.0)


def claim(queue: Queue, seats: int = 2) -> Claim:
    return Claim(str(uuid7()), [Want(str(queue.pk), seats)], ANY_TYPE, seats)


def logs_of(lease: Lease) -> list[JobLog]:
    return list(JobLog.objects.filter(job_id=lease.job_id).order_by("id"))


def test_nothing_to_hand_over_is_false() -> None:
    assert not Handover()
    assert Handover(lines=[LogLine("j", "t", 0.0, "info", "x")])


def test_everything_goes_in_one_round_trip(queue: Queue) -> None:
    make_jobs(queue, 6)
    ended, begun, busy, _ = claim_from(queue, 4, starts=0)

    with CaptureQueriesContext(connection) as queries:
        takeaway = exchange(
            Handover(
                endings=[ending(ended)], begun=[begun], lines=[line(ended), line(busy)],
                progress=[Progress(busy.job_id, busy.token, 40, "half")], claim=claim(queue), now=100.0,
            )
        )  # fmt: skip

    assert len(queries) == 1
    assert takeaway.settled.statuses == {ended.job_id: "completed"}
    assert len(takeaway.leases) == 2
    assert reload(begun.job_id).status == "running"
    assert (reload(busy.job_id).progress_percent, reload(busy.job_id).progress_note) == (40, "half")
    assert [len(logs_of(lease)) for lease in (ended, busy)] == [1, 1]


def test_a_claim_sees_the_room_that_the_settles_of_the_same_trip_made(db: None) -> None:
    queue = make_queue(max_concurrency=2)
    make_jobs(queue, 5)
    leases = claim_from(queue, 2)

    takeaway = exchange(Handover(endings=[ending(lease) for lease in leases], claim=claim(queue, 5)))

    assert len(takeaway.leases) == 2
    assert Job.objects.in_flight().count() == 2


def test_lines_of_an_attempt_that_ends_in_the_same_trip_are_kept(queue: Queue) -> None:
    make_jobs(queue, 1)
    [lease] = claim_from(queue, 1)

    exchange(Handover(endings=[ending(lease)], lines=[line(lease, f"n{n}") for n in range(3)], now=100.0))

    assert [log.message for log in logs_of(lease)] == ["n0", "n1", "n2"]
    assert {str(log.execution_id) for log in logs_of(lease)} == {lease.token}
    assert JobExecution.objects.get().pk == logs_of(lease)[0].execution_id


def test_an_attempt_that_begins_and_ends_in_the_same_trip_is_completed(queue: Queue) -> None:
    make_jobs(queue, 1)
    [lease] = claim_from(queue, 1, starts=0)

    exchange(Handover(begun=[lease], endings=[ending(lease)]))

    assert reload(lease.job_id).status == "completed"


def test_lines_keep_their_time_level_and_text(queue: Queue) -> None:
    make_jobs(queue, 1)
    [lease] = claim_from(queue, 1)
    hostile = "%s {\"}\\ '; NULL \n 日本 🎈"

    exchange(Handover(lines=[line(lease, hostile, ago_s=30, level="error"), line(lease, "now")], now=100.0))

    first, second = logs_of(lease)
    assert (first.message, first.level) == (hostile, "error")
    assert (second.ts - first.ts).total_seconds() == pytest.approx(30, abs=1)
    assert first.project_id == queue.project_id


def test_only_the_latest_progress_of_a_job_is_written(queue: Queue) -> None:
    make_jobs(queue, 2)
    one, other = claim_from(queue, 2)

    exchange(
        Handover(
            progress=[Progress(one.job_id, one.token, 1, "a"), Progress(other.job_id, other.token, 7, None),
                      Progress(one.job_id, one.token, 2, None), Progress(one.job_id, one.token, 3, "c")]
        )
    )  # fmt: skip

    assert (reload(one.job_id).progress_percent, reload(one.job_id).progress_note) == (3, "c")
    assert (reload(other.job_id).progress_percent, reload(other.job_id).progress_note) == (7, None)


@pytest.mark.django_db(transaction=True)
def test_on_an_error_nothing_of_it_was_written(queue: Queue) -> None:
    make_jobs(queue, 4)
    ended, begun, refused = claim_from(queue, 3, starts=0)

    with pytest.raises(DatabaseError):
        exchange(
            Handover(
                endings=[ending(ended), ending(refused, Succeeded('"\\u0000"'))], begun=[begun], lines=[line(ended)],
                progress=[Progress(begun.job_id, begun.token, 40, "half")], claim=claim(queue), now=100.0,
            )
        )  # fmt: skip

    assert sorted(Job.objects.values_list("status", flat=True)) == ["claimed"] * 3 + ["queued"]
    assert reload(begun.job_id).progress_percent is None
    assert not JobExecution.objects.exists()
    assert logs_of(ended) == []


def test_a_ghost_among_the_endings_is_told_and_the_rest_is_done(queue: Queue) -> None:
    make_jobs(queue, 3)
    one, ghost = claim_from(queue, 2)
    exchange(Handover(endings=[ending(ghost, Failed("first"))]))

    takeaway = exchange(Handover(endings=[ending(one), ending(ghost)], claim=claim(queue)))

    assert takeaway.settled.statuses == {one.job_id: "completed"}
    assert [lost.token for lost in takeaway.settled.lost] == [ghost.token]
    assert len(takeaway.leases) == 1


def test_a_claim_alone_brings_leases_and_settles_nothing(queue: Queue) -> None:
    make_jobs(queue, 3)

    takeaway = exchange(Handover(claim=claim(queue, 5), now=time.monotonic()))

    assert len(takeaway.leases) == 3
    assert takeaway.settled == Takeaway().settled
