"""exchange: one round trip of a worker. It hands over what ended and takes what is next.

All of it is one transaction: log lines, progress and starts first, while the leases still hold; then the settles;
then the claim, which sees the room that the settles made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jobs.lease import Ending, Lease
from jobs.lifecycle.claim import Claim, claim_calls, leases_of
from jobs.lifecycle.settle import Settled, settle_calls, settled_of
from jobs.lifecycle.start import start_call
from jobs.models import Job
from scheduler_project.lib.sql import past_deadlocks, run_prepared
from scheduler_project.lib.statements import Call, plain_array, text_array


class LogLine(NamedTuple):
    """A line a handler logged, ``ago_ms`` before it is sent."""

    job_id: str
    token: str
    at: float
    level: str
    message: str


class Progress(NamedTuple):
    """How far a handler says it is."""

    job_id: str
    token: str
    percent: int
    note: str | None


@dataclass(slots=True)
class Handover:
    """What a worker brings."""

    endings: Sequence[Ending] = ()
    begun: Sequence[Lease] = ()
    lines: Sequence[LogLine] = ()
    progress: Sequence[Progress] = ()
    claim: Claim | None = None
    now: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.endings or self.begun or self.lines or self.progress or self.claim)


@dataclass(slots=True)
class Takeaway:
    """What it takes home."""

    settled: Settled = field(default_factory=lambda: Settled({}, []))
    leases: list[Lease] = field(default_factory=list)


def exchange(handover: Handover) -> Takeaway:
    """Send it all in one round trip. On an error nothing of it was written."""
    calls = []
    kinds = [kind for kind in (handover.progress, handover.begun, handover.endings) if kind]
    if len(kinds) > 1:
        calls.append(_hold_call(kinds))
    if handover.lines:
        calls.append(lines_call(handover.lines, handover.now))
    if handover.progress:
        calls.append(_progress_call(handover.progress))
    if handover.begun:
        calls.append(start_call(handover.begun))
    settled_at = len(calls)
    if handover.endings:
        calls += settle_calls(handover.endings)
    settled_by = len(calls)
    if handover.claim:
        calls += claim_calls(handover.claim)
    answers = past_deadlocks(lambda: run_prepared(calls))
    takeaway = Takeaway()
    if handover.endings:
        takeaway.settled = settled_of(handover.endings, answers[settled_at:settled_by])
    if handover.claim:
        takeaway.leases = leases_of(answers[-1])
    return takeaway


def _hold_call(kinds: Sequence[Sequence[Progress | Lease | Ending]]) -> Call:
    """Each statement locks its jobs in the order of their ids; several in one transaction together must too."""
    return Job.claims.hold(ids=plain_array([item.job_id for items in kinds for item in items]))


def lines_call(lines: Sequence[LogLine], now: float) -> Call:
    """Write lines of handlers' logs; those whose lease is lost are left out."""
    return Job.claims.log_lines(
        job_ids=plain_array([line.job_id for line in lines]),
        tokens=plain_array([line.token for line in lines]),
        ago_ms=plain_array([round((now - line.at) * 1000, 3) for line in lines]),
        levels=plain_array([line.level for line in lines]),
        messages=text_array([line.message for line in lines]),
    )


def _progress_call(news: Sequence[Progress]) -> Call:
    latest = sorted({item.token: item for item in news}.values())
    return Job.claims.progress(
        ids=plain_array([item.job_id for item in latest]),
        tokens=plain_array([item.token for item in latest]),
        percents=plain_array([item.percent for item in latest]),
        notes=text_array([item.note for item in latest]),
    )
