"""Every verb in every state: it draws an arrow of the table, or changes nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from dlq.models import DeadLetter
from jobs.decisions import Cancelled, Discarded, Failed, Interrupted, Lost, Snoozed, Succeeded, Unbegun, Verdict
from jobs.lease import Lease
from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.exchange import Handover, LogLine, Progress, exchange
from jobs.lifecycle.promote import promote_due
from jobs.lifecycle.reap import reap_expired
from jobs.lifecycle.requeue import requeue_job
from jobs.models import Job, JobExecution, JobLog
from jobs.states import ARROWS, IN_FLIGHT, JobStatus, sources_of
from scheduler_project.lib.errors import Conflict
from tests.factories import JobIn, claim_from, claim_one, end, job_in, lapse, make_job, make_queue, reload

pytestmark = pytest.mark.django_db


def forged(given: JobIn) -> Lease:
    """The lease the job had; if it never had one, one that belongs to another job, made out to this one."""
    if given.lease is not None:
        return given.lease
    other = make_queue()
    make_job(other)
    return claim_one(other)._replace(job_id=str(given.job.pk))


def promote(given: JobIn) -> None:
    Job.objects.filter(pk=given.job.pk, status="scheduled").update(run_at=Now())
    promote_due(limit=10, only=[str(given.job.pk)])


def claim(given: JobIn) -> None:
    claim_from(given.job.queue, 5, starts=0)


def claim_and_start(given: JobIn) -> None:
    claim_from(given.job.queue, 5)


def start(given: JobIn) -> None:
    exchange(Handover(begun=[forged(given)]))


def settle_with(verdict: Verdict) -> Callable[[JobIn], None]:
    def settle(given: JobIn) -> None:
        end(forged(given), verdict)

    settle.__name__ = f"settle_{type(verdict).__name__.lower()}"
    return settle


def reap(given: JobIn) -> None:
    Job.objects.in_flight().filter(pk=given.job.pk).update(lease_expires_at=Now())
    reap_expired(limit=10, only=[str(given.job.pk)])


def reap_too_early(given: JobIn) -> None:
    reap_expired(limit=10, only=[str(given.job.pk)])


def cancel(given: JobIn) -> None:
    cancel_job(given.job.pk, reason="test")


def requeue(given: JobIn) -> None:
    requeue_job(given.job.pk, by=None)


def tell(given: JobIn) -> None:
    """Log and tell progress: not a verb, but fenced like one."""
    lease = forged(given)
    exchange(
        Handover(
            lines=[LogLine(lease.job_id, lease.token, 0.0, "info", "x")],
            progress=[Progress(lease.job_id, lease.token, 1, None)],
        )
    )


SETTLES: list[Verdict] = [
    Succeeded(),
    Failed("x"),
    Snoozed(1),
    Discarded("x"),
    Cancelled("x"),
    Interrupted(),
    Unbegun(),
    Lost(),
]
#: What is done, and in which states it may change the job.
DEEDS: list[tuple[Callable[[JobIn], None], set[JobStatus]]] = [
    (promote, {JobStatus.SCHEDULED}),
    (claim, {JobStatus.QUEUED}),
    (claim_and_start, {JobStatus.QUEUED}),
    (start, {JobStatus.CLAIMED}),
    *[(settle_with(verdict), set(IN_FLIGHT)) for verdict in SETTLES],
    (reap, set(IN_FLIGHT)),
    (reap_too_early, set()),
    (cancel, {JobStatus.QUEUED, JobStatus.SCHEDULED, *IN_FLIGHT}),
    (requeue, {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.CANCELLED}),
    (tell, set(IN_FLIGHT)),
]
PAIRS = [(deed, status) for deed, _ in DEEDS for status in JobStatus]
ALLOWED = dict(DEEDS)


def everything_about(job: Job) -> list[Any]:
    """All that is stored about a job, to be compared."""
    return [
        Job.objects.values().get(pk=job.pk),
        list(JobExecution.objects.filter(job_id=job.pk).order_by("pk").values()),
        list(DeadLetter.objects.filter(job_id=job.pk).order_by("pk").values()),
        JobLog.objects.filter(job_id=job.pk).count(),
    ]


@pytest.mark.parametrize(("deed", "status"), PAIRS, ids=[f"{deed.__name__}-{status}" for deed, status in PAIRS])
def test_a_verb_changes_a_job_only_in_the_states_it_is_for(deed: Callable[[JobIn], None], status: JobStatus) -> None:
    given = job_in(status)
    before = everything_about(given.job)

    try:
        deed(given)
    except Conflict:
        assert status not in ALLOWED[deed]

    has_changed = everything_about(given.job) != before
    assert has_changed == (status in ALLOWED[deed])


@pytest.mark.parametrize(("deed", "status"), PAIRS, ids=[f"{deed.__name__}-{status}" for deed, status in PAIRS])
def test_a_change_of_state_is_an_arrow_of_the_table(deed: Callable[[JobIn], None], status: JobStatus) -> None:
    given = job_in(status)

    try:
        deed(given)
    except Conflict:
        return

    target = JobStatus(reload(given.job).status)
    assert target == status or way(status, target), f"{status} -> {target} by {deed.__name__}"


def way(source: JobStatus, target: JobStatus) -> bool:
    """Is there an arrow, or two of which the first is passed through in the same statement?

    A claim may start at once, and a prefetched job may end before its start was written: it has run all the same.
    """
    return (source, target) in ARROWS or any(
        (source, through) in ARROWS and (through, target) in ARROWS
        for through in (JobStatus.CLAIMED, JobStatus.RUNNING)
    )


@pytest.mark.parametrize("verb", ["promote", "claim", "start", "cancel", "requeue"])
def test_the_states_a_verb_is_for_are_those_of_the_arrows(verb: str) -> None:
    [allowed] = [states for deed, states in DEEDS if deed.__name__ == verb]

    assert set(sources_of(verb)) == allowed - (set(IN_FLIGHT) if verb == "cancel" else set())


def test_a_token_that_never_was_ends_nothing() -> None:
    given = job_in("running")
    assert given.lease is not None
    before = everything_about(given.job)

    end(given.lease._replace(token=str(uuid4())), Succeeded())

    assert everything_about(given.job) == before


def test_an_expired_lease_is_still_one_of_a_job_in_flight() -> None:
    given = job_in("running")
    assert given.lease is not None
    lapse(given.lease)

    assert Job.objects.in_flight().filter(pk=given.job.pk).exists()
