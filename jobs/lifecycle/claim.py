"""claim: queued -> claimed, and on to running for those whose handler begins at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobs.decisions import Unbegun
from jobs.events import jobs_changed
from jobs.lease import Ending, Lease
from jobs.models import Job
from queues.locks import QUEUE_LOCK_CLASS
from scheduler_project.lib.sql import Row, run_together
from scheduler_project.lib.statements import Call, plain_array, text_array


class Position(NamedTuple):
    """A place in a queue's order: claims start behind it. ``rank`` is the negated priority."""

    rank: int
    run_at: str
    job_id: str


HEAD = Position(-2_147_483_648, "-infinity", "00000000-0000-0000-0000-000000000000")


class Want(NamedTuple):
    """How many jobs of one queue to claim, at most, from behind which position."""

    queue_id: str
    seats: int
    position: Position = HEAD
    is_gated: bool = False


@dataclass(frozen=True, slots=True)
class KnownTypes:
    """The job types a worker has handlers for, as array literals: only these are claimed."""

    names: str
    patterns: str

    @classmethod
    def of(cls, names: Sequence[str], patterns: Sequence[str] = ()) -> KnownTypes:
        """From names, and from patterns in which a star stands for anything."""
        # A backslash keeps the underscore from being LIKE's own joker.
        likes = [p.replace("\\", "\\\\").replace("_", r"\_").replace("*", chr(37)) for p in patterns]
        return cls(text_array(list(names)), text_array(likes))


@dataclass(frozen=True, slots=True)
class Claim:
    """What a worker asks for. The first ``starts`` jobs are handed over as running, the others as claimed."""

    worker_id: str
    wants: Sequence[Want]
    types: KnownTypes
    starts: int


def claim_jobs(claim: Claim) -> list[Lease]:
    """Hand queued jobs to a worker, each with a fresh lease token that every later write must present.

    Returns 0 to the sum of wanted seats, never above a queue's max_concurrency over all workers. Gated queues are left
    out: they are for ``claim_gated``.
    Source: sql/open_queues.sql, sql/claim.sql; ADR 0005.
    """
    leases = leases_of(run_together(claim_calls(claim))[-1])
    jobs_changed(lease.job_id for lease in leases)
    return leases


def claim_calls(claim: Claim) -> list[Call]:
    """The two statements of a claim, to run in this order in one transaction: lock, then count and claim."""
    queue_ids = plain_array([want.queue_id for want in claim.wants])
    return [
        Job.claims.open_queues(queue_ids=queue_ids, lock_class=QUEUE_LOCK_CLASS),
        Job.claims.claim(
            queue_ids=queue_ids,
            seats=plain_array([want.seats for want in claim.wants]),
            from_ranks=plain_array([want.position.rank for want in claim.wants]),
            from_run_ats=text_array([want.position.run_at for want in claim.wants]),
            from_ids=plain_array([want.position.job_id for want in claim.wants]),
            types=claim.types.names,
            patterns=claim.types.patterns,
            worker_id=claim.worker_id,
            starts=claim.starts,
        ),
    ]


def leases_of(rows: Sequence[Row]) -> list[Lease]:
    """The leases in the order in which they were picked."""
    return sorted([Lease._make(row) for row in rows], key=_place)


def _place(lease: Lease) -> int:
    return lease.place


def ready_queues(queue_ids: Sequence[str] | None, types: KnownTypes, sure: Sequence[str] = ()) -> list[Row]:
    """(id, project_id, priority, is_gated) of the queues that have work and room now; None asks for all queues.

    Args:
        sure: queues that are known to have work, which need not be looked for.
    """
    ids = None if queue_ids is None else plain_array(queue_ids)
    return Job.claims.ready_queues(queue_ids=ids, types=types.names, patterns=types.patterns, sure=plain_array(sure))


def unanswered(worker_id: str, known_tokens: Sequence[str], settled_s: float) -> list[Ending]:
    """Endings that give back what this worker claimed without hearing so: its connection broke at that moment.

    Args:
        settled_s: only leases at least this old, so that a claim under way is left alone.
    """
    rows = Job.claims.claimed_unknown(worker_id=worker_id, known=plain_array(known_tokens), settled_s=settled_s)
    return [Ending(job_id, token, 0, claimed_at, Unbegun(), None, 0.0, worker_id) for job_id, token, claimed_at in rows]
