"""settle: only the present lease ends an attempt, and only once."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from dlq.models import DeadLetter
from jobs.decisions import Discarded, Failed, Snoozed, Succeeded, Unbegun, Verdict
from jobs.lease import Ending, Lease
from jobs.lifecycle.exchange import Handover, LogLine, Progress, exchange
from jobs.lifecycle.settle import settle
from jobs.models import Job, JobExecution, JobLog
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, claim_one, end, executions_of, job_in, lapse, make_job, make_jobs, reload

pytestmark = pytest.mark.django_db


def ending(lease: Lease, verdict: Verdict) -> Ending:
    return Ending.of(lease, verdict, str(uuid7()), 1.0)


@pytest.fixture
def ghost(queue: Queue) -> Lease:
    """A lease whose job was given to another worker."""
    make_job(queue)
    ghost = claim_one(queue)
    end(ghost, Unbegun())
    claim_one(queue)
    return ghost


@pytest.mark.parametrize(
    "verdict", [Succeeded('{"late":true}'), Failed("late"), Discarded("late"), Unbegun(), Snoozed(1)]
)
def test_a_ghost_changes_nothing_and_is_told_so(ghost: Lease, verdict: Verdict) -> None:
    before = Job.objects.values().get()

    settled = end(ghost, verdict)

    assert settled.statuses == {}
    assert [lost.token for lost in settled.lost] == [ghost.token]
    assert Job.objects.values().get() == before
    assert (JobExecution.objects.count(), DeadLetter.objects.count()) == (0, 0)


def test_a_ghost_neither_logs_nor_tells_progress(ghost: Lease) -> None:
    before = Job.objects.values().get()

    exchange(
        Handover(
            lines=[LogLine(ghost.job_id, ghost.token, 0.0, "info", "boo")],
            progress=[Progress(ghost.job_id, ghost.token, 50, "boo")],
        )
    )

    assert Job.objects.values().get() == before
    assert not JobLog.objects.filter(job_id=ghost.job_id).exists()


def test_an_attempt_ends_once(queue: Queue) -> None:
    make_job(queue)
    lease = claim_one(queue)
    end(lease, Succeeded('"first"'))

    second = end(lease, Failed("second"))

    assert [lost.token for lost in second.lost] == [lease.token]
    assert (reload(lease.job_id).status, reload(lease.job_id).result) == ("completed", "first")
    assert len(executions_of(lease.job_id)) == 1


def test_of_two_ends_of_one_attempt_in_one_batch_the_first_counts(queue: Queue) -> None:
    make_jobs(queue, 2)
    lease, other = claim_from(queue, 2)

    settled = settle([ending(lease, Succeeded()), ending(other, Succeeded()), ending(lease, Failed("interrupted"))])

    assert settled.statuses == {lease.job_id: "completed", other.job_id: "completed"}
    assert [execution.status for execution in executions_of(lease.job_id)] == ["completed"]


def test_a_ghost_in_one_batch_with_the_present_attempt_of_its_job_is_told_so(queue: Queue) -> None:
    make_job(queue)
    ghost = claim_one(queue)
    end(ghost, Unbegun())
    present = claim_one(queue)

    settled = settle([ending(present, Succeeded('"present"')), ending(ghost, Succeeded('"ghost"'))])

    assert settled.statuses == {present.job_id: "completed"}
    assert [lost.token for lost in settled.lost] == [ghost.token]
    assert reload(present.job_id).result == "present"


def test_ghosts_do_not_keep_the_others_of_a_batch_from_being_settled(queue: Queue, ghost: Lease) -> None:
    make_jobs(queue, 3)
    leases = claim_from(queue, 3)

    settled = settle([*[ending(lease, Succeeded()) for lease in leases], ending(ghost, Failed("late"))])

    assert settled.statuses == {lease.job_id: "completed" for lease in leases}
    assert [lost.token for lost in settled.lost] == [ghost.token]


@pytest.mark.parametrize("change", ["token", "job"])
def test_a_token_is_good_for_its_own_job_only(queue: Queue, change: str) -> None:
    make_jobs(queue, 2)
    one, other = claim_from(queue, 2)
    forged = one._replace(token=str(uuid4())) if change == "token" else one._replace(job_id=other.job_id)

    settled = end(forged, Succeeded())

    assert len(settled.lost) == 1
    assert set(Job.objects.values_list("status", flat=True)) == {"running"}


def test_a_lease_that_ran_out_and_was_not_reaped_still_settles(queue: Queue) -> None:
    make_job(queue)
    lease = claim_one(queue)
    lapse(lease)

    assert end(lease, Succeeded()).statuses == {lease.job_id: "completed"}


@pytest.mark.parametrize("status", ["completed", "failed", "dead_letter", "cancelled"])
def test_the_token_of_an_ended_attempt_is_worth_nothing(status: str) -> None:
    job, lease = job_in(status)
    assert lease is not None
    before = Job.objects.values().get(pk=job.pk)

    settled = end(lease, Succeeded('"again"'))

    assert len(settled.lost) == 1
    assert Job.objects.values().get(pk=job.pk) == before


def test_a_worker_that_lost_its_lease_and_got_the_job_again_ends_it_with_the_new_token(queue: Queue) -> None:
    worker_id = uuid7()
    make_job(queue)
    old = claim_one(queue, worker_id=worker_id)
    end(old, Unbegun(), worker_id=worker_id)
    new = claim_one(queue, worker_id=worker_id)

    settled: Any = [end(old, Succeeded('"old"')), end(new, Succeeded('"new"'))]

    assert [len(s.lost) for s in settled] == [1, 0]
    assert reload(new.job_id).result == "new"
