"""claim, from a queue with a rate or with concurrency keys: queued -> claimed.

Such a queue is claimed from by one worker at a time, in several statements: what it lets through is counted under the
queue's lock, from live leases and its token bucket, and then so much is picked.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from jobs.lease import Lease
from jobs.lifecycle.claim import Claim, Want, leases_of
from jobs.models import Job
from queues.locks import QUEUE_LOCK_CLASS
from scheduler_project.lib.sql import past_deadlocks, run_together
from scheduler_project.lib.statements import plain_array

#: Rows of the queue that are looked at for each seat, since those of one key may fill a few places only.
LOOK_AT_PER_SEAT, LOOK_AT_LEAST, LOOK_AT_MOST = 4, 200, 2_000


@dataclass(frozen=True, slots=True)
class Gated:
    """What came of it; ``wait_s``: the queue's rate lets nothing through for so long."""

    leases: list[Lease]
    wait_s: float = 0.0


def claim_gated(claim: Claim, want: Want) -> Gated:
    """Hand jobs of one gated queue to a worker: within its max_concurrency, its rate and the limit of each key.

    Source: sql/open_queues.sql, sql/open_gate.sql, sql/claim_gated.sql, sql/spend_rate.sql; ADR 0016.
    """
    return past_deadlocks(lambda: _claim_gated(claim, want))


def _claim_gated(claim: Claim, want: Want) -> Gated:
    with transaction.atomic():
        gate = _open(want.queue_id)
        if gate is None:
            return Gated([])
        seats = gate.seats(want.seats)
        if seats == 0:
            return Gated([], gate.wait_s())
        leases = _pick(claim, want.queue_id, gate, seats)
        if leases and gate.tokens is not None:
            left = gate.tokens - len(leases)
            run_together([Job.claims.spend_rate(queue_id=want.queue_id, tokens=left, at=gate.at)])
    return Gated(leases)


@dataclass(frozen=True, slots=True)
class _Gate:
    key_limit: int
    lease_s: int
    room: int | None
    tokens: float | None
    per_s: float | None
    at: str

    def seats(self, wanted: int) -> int:
        by_room = wanted if self.room is None else min(wanted, self.room)
        return max(0, by_room if self.tokens is None else min(by_room, int(self.tokens)))

    def wait_s(self) -> float:
        return 0.0 if self.tokens is None or self.per_s is None else max(0.0, (1.0 - self.tokens) / self.per_s)


def _open(queue_id: str) -> _Gate | None:
    calls = [
        Job.claims.open_queues(queue_ids=plain_array([queue_id]), lock_class=QUEUE_LOCK_CLASS),
        Job.claims.open_gate(queue_id=queue_id),
    ]
    rows = run_together(calls)[-1]
    return _Gate(*rows[0]) if rows else None


def _pick(claim: Claim, queue_id: str, gate: _Gate, seats: int) -> list[Lease]:
    call = Job.claims.claim_gated(
        queue_id=queue_id,
        seats=seats,
        key_limit=gate.key_limit,
        lease_s=gate.lease_s,
        look_at=min(LOOK_AT_MOST, max(LOOK_AT_LEAST, seats * LOOK_AT_PER_SEAT)),
        types=claim.types.names,
        patterns=claim.types.patterns,
        worker_id=claim.worker_id,
        starts=claim.starts,
    )
    return leases_of(run_together([call])[-1])
