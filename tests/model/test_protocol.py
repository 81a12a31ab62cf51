"""Claim, lease and fence held against a model that knows no database: random verbs, in random order, in real sessions.

A second session's transaction may stay open meanwhile: what it locked is walked past, and what it wrote is there or not
as it ends. By environment: MODEL_EXAMPLES=2000.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError
from django.db.models.functions import Now
from django.test import override_settings
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from jobs import sql
from jobs.decisions import Lost, Verdict
from jobs.lease import Ending, Lease
from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.claim import Claim, Want, claim_jobs
from jobs.lifecycle.exchange import Handover, exchange
from jobs.lifecycle.extend import Held, extend_leases
from jobs.lifecycle.promote import promote_due
from jobs.lifecycle.reap import reap_expired
from jobs.lifecycle.requeue import requeue_job
from jobs.lifecycle.settle import Settled, settle
from jobs.models import Job, JobExecution
from scheduler_project.lib.errors import Conflict
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.statements import Statement
from tests.factories import ANY_TYPE, make_job, make_queue
from tests.model.other import Other
from tests.model.simple import VERDICTS, Simple
from tests.sizes import size

EXAMPLES = size("MODEL_EXAMPLES", suite=40, full=2_000)
LONG_S = 600
workers = st.integers(0, 2)
choice = st.integers(0, 10**6)


def is_free(machine: Protocol) -> bool:
    """No transaction is open in the other session."""
    return machine.pending is None


class Protocol(RuleBasedStateMachine):
    """One queue; three workers; leases of which any may be used again at any time, by ghosts."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = make_queue(visibility_timeout_secs=LONG_S)
        self.workers = [str(uuid7()) for _ in range(3)]
        self.jobs: dict[str, Simple] = {}
        self.leases: list[Lease] = []
        self.other = Other()
        #: What the open transaction has done, told when it commits; and the jobs that it has locked.
        self.pending: Callable[[], None] | None = None
        self.locked: set[str] = set()

    def teardown(self) -> None:
        if self.pending is not None:
            self.other.close(commits=False)
        self.other.leave()

    # -- verbs that may run in either session --------------------------------------------------------------------
    def _claim(self, worker: int, seats: int, starts: int) -> list[Lease]:
        return claim_jobs(Claim(self.workers[worker], [Want(str(self.queue.pk), seats)], ANY_TYPE, starts))

    def _is_claimed(self, worker: int, leases: list[Lease], starts: int) -> None:
        for place, lease in enumerate(leases):
            job = self.jobs[lease.job_id]
            self.jobs[lease.job_id] = job.claimed(lease.token, self.workers[worker], begins=place < starts)
            assert lease.fencing_number == self.jobs[lease.job_id].claims
        self.leases += leases

    def _settle(self, lease: Lease, verdict: Verdict, worker: str) -> Settled:
        return settle([Ending.of(lease, verdict, worker, 1.0)])

    def _is_settled(self, lease: Lease, verdict: Verdict, settled: Settled) -> None:
        job = self.jobs[lease.job_id]
        if job.token != lease.token:
            assert [ending.token for ending in settled.lost] == [lease.token], "a ghost was heard"
            return
        self.jobs[lease.job_id] = job.settled(verdict)
        assert settled.statuses == {lease.job_id: self.jobs[lease.job_id].status}

    def _expired(self) -> set[str]:
        return {id_ for id_, job in self.jobs.items() if job.has_lapsed} - self.locked

    def _are_lost(self, ids: set[str]) -> None:
        for id_ in ids:
            self.jobs[id_] = self.jobs[id_].settled(Lost())

    def _queued(self) -> set[str]:
        return {id_ for id_, job in self.jobs.items() if job.status == "queued"} - self.locked

    # -- this session ------------------------------------------------------------------------------------------
    @rule(most=st.integers(1, 3))
    def submit(self, most: int) -> None:
        self.jobs[str(make_job(self.queue, max_attempts=most).pk)] = Simple(most=most)

    @rule(worker=workers, seats=st.integers(1, 4), starts=st.integers(0, 4))
    def claim(self, worker: int, seats: int, starts: int) -> None:
        there = self._queued()
        leases = self._claim(worker, seats, starts)
        assert len(leases) == min(seats, len(there)), "forgotten, or too many"
        assert {lease.job_id for lease in leases} <= there
        self._is_claimed(worker, leases, starts)

    @precondition(lambda self: self.leases)
    @rule(which=choice, verdict=st.sampled_from(VERDICTS))
    def settle(self, which: int, verdict: Verdict) -> None:
        lease = self._pick(which)
        if lease.job_id not in self.locked:
            self._is_settled(lease, verdict, self._settle(lease, verdict, self.workers[0]))

    @precondition(lambda self: self.leases)
    @rule(which=choice)
    def start(self, which: int) -> None:
        lease = self._pick(which)
        if lease.job_id in self.locked:
            return
        exchange(Handover(begun=[lease]))
        job = self.jobs[lease.job_id]
        if job.token == lease.token:
            self.jobs[lease.job_id] = replace(job, status="running")

    @precondition(lambda self: self.leases)
    @rule(worker=workers)
    def extend(self, worker: int) -> None:
        """A worker extends all leases it ever had, as one that was frozen would."""
        held = [Held(lease.job_id, lease.token, LONG_S) for lease in self.leases]
        found = extend_leases(held)
        assert set(found) == {job.token for job in self.jobs.values() if job.token is not None}
        for id_, job in self.jobs.items():
            if job.token is not None:
                assert found[job.token] == job.is_asked
                if id_ not in self.locked:
                    self.jobs[id_] = replace(job, has_lapsed=False)

    @rule()
    def reap(self) -> None:
        expired = self._expired()
        assert reap_expired(limit=1_000, only=list(self.jobs)) == len(expired)
        self._are_lost(expired)

    @precondition(lambda self: self.leases)
    @rule(which=choice)
    def lapse(self, which: int) -> None:
        """Time passes for one lease."""
        lease = self._pick(which)
        job = self.jobs[lease.job_id]
        if lease.job_id not in self.locked and job.token == lease.token:
            Job.objects.filter(pk=lease.job_id).update(lease_expires_at=Now())
            self.jobs[lease.job_id] = replace(job, has_lapsed=True)

    @precondition(lambda self: self.jobs)
    @rule(which=choice)
    def cancel(self, which: int) -> None:
        id_ = list(self.jobs)[which % len(self.jobs)]
        if id_ in self.locked:
            return
        if self.jobs[id_].has_ended:
            with pytest.raises(Conflict):
                cancel_job(UUID(id_), reason="x")
        else:
            cancel_job(UUID(id_), reason="x")
            self.jobs[id_] = self.jobs[id_].cancelled()

    @rule()
    def promote(self) -> None:
        """Time passes for all that is planned."""
        planned = {id_ for id_, job in self.jobs.items() if job.status == "scheduled"} - self.locked
        Job.objects.filter(pk__in=planned).update(run_at=Now())
        assert promote_due(limit=1_000, only=list(self.jobs)) == len(planned)
        for id_ in planned:
            self.jobs[id_] = replace(self.jobs[id_], status="queued")

    @precondition(lambda self: self.jobs)
    @rule(which=choice)
    def requeue(self, which: int) -> None:
        id_ = list(self.jobs)[which % len(self.jobs)]
        if id_ not in self.locked and self.jobs[id_].has_ended:
            requeue_job(UUID(id_), by=None)
            self.jobs[id_] = self.jobs[id_].requeued()

    # -- the other session -------------------------------------------------------------------------------------
    @precondition(is_free)
    @rule(worker=workers, seats=st.integers(1, 4))
    def open_claim(self, worker: int, seats: int) -> None:
        there = self._queued()
        leases = self.other.open(lambda: self._claim(worker, seats, 1))
        assert len(leases) == min(seats, len(there))
        self._stays_open({lease.job_id for lease in leases}, lambda: self._is_claimed(worker, leases, 1))

    @precondition(lambda self: is_free(self) and self.leases)
    @rule(which=choice, verdict=st.sampled_from(VERDICTS))
    def open_settle(self, which: int, verdict: Verdict) -> None:
        lease = self._pick(which)
        settled = self.other.open(lambda: self._settle(lease, verdict, self.workers[1]))
        self._stays_open({lease.job_id}, lambda: self._is_settled(lease, verdict, settled))

    @precondition(is_free)
    @rule()
    def open_reap(self) -> None:
        expired = self._expired()
        assert self.other.open(lambda: reap_expired(limit=1_000, only=list(self.jobs))) == len(expired)
        self._stays_open(expired, lambda: self._are_lost(expired))

    @precondition(lambda self: not is_free(self))
    @rule(commits=st.booleans())
    def close(self, commits: bool) -> None:
        self.other.close(commits=commits)
        done, self.pending, self.locked = self.pending, None, set()
        if commits and done is not None:
            done()

    def _stays_open(self, locked: set[str], then: Callable[[], None]) -> None:
        self.pending, self.locked = then, locked

    def _pick(self, which: int) -> Lease:
        return self.leases[which % len(self.leases)]

    # -- always ------------------------------------------------------------------------------------------------
    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        fields = ("id", "status", "attempt_count", "fencing_number", "lease_token", "locked_by")
        found: dict[str, tuple[Any, ...]] = {}
        for id_, *values, token, worker in Job.objects.filter(queue=self.queue).values_list(*fields):
            found[str(id_)] = (*values, token and str(token), worker and str(worker))
        assert found == {
            id_: (job.status, job.used, job.claims, job.token, job.worker) for id_, job in self.jobs.items()
        }

    @invariant()
    def the_history_has_each_attempt_once(self) -> None:
        rows = JobExecution.objects.filter(job__queue=self.queue).values_list("job_id", flat=True)
        counted = [str(id_) for id_ in rows]
        assert {id_: counted.count(id_) for id_ in self.jobs} == {id_: job.records for id_, job in self.jobs.items()}


def run_machine() -> None:
    run_state_machine_as_test(
        Protocol,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=50,
            deadline=None,
            phases=[Phase.generate],  # a failure shows at once; to make it small takes hours in real sessions
            suppress_health_check=list(HealthCheck),
            derandomize="MODEL_EXAMPLES" not in os.environ,
            database=None,
        ),
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(1_200)
@override_settings(POISON_AFTER=1_000)
def test_claim_lease_and_fence_do_as_the_model_says() -> None:
    run_machine()


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(1_200)
@override_settings(POISON_AFTER=1_000)
@pytest.mark.parametrize(
    ("name", "guard", "without"),
    [
        ("SETTLE", "and job.lease_token = verdict.token", ""),
        ("EXPIRED", "lease_expires_at < clock_timestamp()", "true"),
    ],
)
def test_without_a_guard_the_model_notices(
    monkeypatch: pytest.MonkeyPatch, name: str, guard: str, without: str
) -> None:
    found = getattr(sql, name)
    assert guard in found.text
    monkeypatch.setattr(sql, name, Statement(found.name, found.text.replace(guard, without)))

    with pytest.raises((AssertionError, DatabaseError, FlakyFailure)):
        run_machine()
