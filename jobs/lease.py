"""What a worker holds while it runs a job, and how it says that the attempt ended."""

from __future__ import annotations

import time
from typing import NamedTuple

from jobs.decisions import Verdict


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

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.attempt_count + 1


class Ending(NamedTuple):
    """An attempt that is over.

    Attributes:
        attempt_count: attempts used before this one.
        ran_ms: how long the handler ran; None if it never began or nobody knows.
        ended_at: this process's monotonic clock at the end, in seconds; only the interval since then is sent.
        worker_id: whose attempt it was.
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
