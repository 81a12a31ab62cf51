"""What a worker holds while it runs a job, and how it says that the attempt ended."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol

from django.db import DatabaseError, transaction

from jobs import sql
from jobs.decisions import Verdict
from scheduler_project.lib.sql import run

#: SQLSTATE of the function assert_lease.
LEASE_LOST = "PL001"


class Lease(NamedTuple):
    """One claimed job, as ``claim.sql`` returns it: the right to end this attempt, proved by ``token``.

    ``claimed_at`` and ``run_at`` stay the database's own text: they go back to it as they came.
    """

    job_id: str
    token: str
    queue_id: str
    job_type: str
    payload_json: str
    attempt_count: int
    fencing_number: int
    lease_s: int
    claimed_at: str
    trace_id: str
    is_running: bool
    priority: int
    run_at: str
    place: int
    circuit: str | None = None
    project_id: str = ""
    timeout_s: float | None = None
    #: Attempts of this job whose process died.
    lost_count: int = 0
    #: So many of the seats that were wanted for its queue did the queue's limit leave.
    room: int = 2**31 - 1

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.attempt_count + 1


class Written(NamedTuple):
    """An attempt whose end was written in its handler's own transaction, and the circuits that are open now."""

    verdict: Verdict
    status: str
    open_circuits: frozenset[tuple[str, str]]


class Ending(NamedTuple):
    """An attempt that is over.

    Attributes:
        attempt_count: attempts used before this one.
        ran_ms: how long the handler ran; None if it never began or nobody knows.
        ended_at: this process's monotonic clock at the end, in seconds; only the interval since then is sent.
        worker_id: whose attempt it was.
        written: it is written already.
    """

    job_id: str
    token: str
    attempt_count: int
    claimed_at: str
    verdict: Verdict
    ran_ms: float | None
    ended_at: float
    worker_id: str
    circuit: str | None = None
    project_id: str = ""
    written: Written | None = None

    @classmethod
    def of(cls, lease: Lease, verdict: Verdict, worker_id: str, ran_ms: float | None = None) -> Ending:
        """The attempt of ``lease`` ends at this moment."""
        ended_at = time.monotonic()
        return cls(
            lease.job_id,
            lease.token,
            lease.attempt_count,
            lease.claimed_at,
            verdict,
            ran_ms,
            ended_at,
            worker_id,
            lease.circuit,
            lease.project_id,
        )


class Holder(Protocol):
    """Who holds a lease, or believes so: a handler's context."""

    @property
    def job_id(self) -> str:
        """Of which job."""

    @property
    def token(self) -> str:
        """The proof."""


class LeaseLost(Exception):
    """The lease is gone: another attempt may have begun. Roll back."""


def assert_lease(holder: Holder) -> None:
    """Refuse to go on without the lease: the last statement of a handler's own transaction, before its commit.

    From here to the commit nobody can take the lease over: the job's row is locked, so the commit must come at once.

    Raises:
        LeaseLost: it is gone; leave the transaction by this exception, and nothing is written.
        TransactionManagementError: there is no transaction, and so nothing to protect.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError("assert_lease protects a transaction: call it inside of atomic()")
    try:
        run(sql.ASSERT_LEASE, {"job_id": holder.job_id, "lease_token": holder.token})
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", None) != LEASE_LOST:
            raise
        raise LeaseLost(f"The lease of job {holder.job_id} is lost.") from None
