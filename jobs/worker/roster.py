"""Which queues to claim from next, how many from each, and from where.

Between queues: bands of equal priority; the highest band with work gets most seats, every lower one a small share,
so that none starves. Inside a band the project that used the least time comes first (deficit round robin), then the
queue that was served longest ago.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobs.lease import Lease
from jobs.lifecycle.claim import HEAD, Position, Want

#: One seat in so many goes to the bands below the highest.
LOWER_SHARE = 10
#: Claims from fewer queues at once are cheaper, claims from more are fairer.
QUEUES_AT_ONCE, SEATS_PER_QUEUE = 4, 16
#: A claim starts behind the last one's position, past dead index entries; this often it starts at the head again,
#: where more urgent jobs may have arrived.
HEAD_EVERY_S = 0.25
HALF_LIFE_S = 10.0


@dataclass(slots=True)
class QueueState:
    """What a worker knows of a queue."""

    queue_id: str
    project_id: str
    priority: int
    is_gated: bool = False
    position: Position = HEAD
    head_at: float = 0.0
    served: int = 0


class Roster:
    """The queues believed to have work. Not safe for several threads: the loop's own."""

    def __init__(self) -> None:
        self._known: dict[str, QueueState] = {}
        self._ready: dict[str, QueueState] = {}
        self._turn = 0
        self._used_s: defaultdict[str, float] = defaultdict(float)
        self._used_at = time.monotonic()

    def __bool__(self) -> bool:
        return bool(self._ready)

    def refresh(self, rows: Iterable[Sequence[object]]) -> None:
        """Take the database's word for which queues have work: (id, project_id, priority, is_gated)."""
        ready: dict[str, QueueState] = {}
        for queue_id, project_id, priority, is_gated in rows:
            state = self._known.get(str(queue_id)) or QueueState(str(queue_id), str(project_id), 0)
            state.priority, state.is_gated = int(str(priority)), bool(is_gated)
            ready[state.queue_id] = self._known[state.queue_id] = state
        self._ready = ready

    def touch(self, queue_id: str) -> bool:
        """A queue may have work or room again; False if it was never heard of."""
        state = self._known.get(queue_id)
        if state is None:
            return False
        if queue_id not in self._ready:
            state.position = HEAD
            self._ready[queue_id] = state
        return True

    def charge(self, queue_id: str, ran_ms: float) -> None:
        """Count the time a job took against its project."""
        state = self._known.get(queue_id)
        if state is not None:
            self._used_s[state.project_id] += ran_ms / 1000

    def plan(self, seats: int) -> list[Want]:
        """Spread ``seats`` over the queues with work."""
        if not self._ready or seats <= 0:
            return []
        self._turn += 1
        if len(self._ready) == 1:
            return [self._want(state, seats) for state in self._ready.values()]
        bands: defaultdict[int, list[QueueState]] = defaultdict(list)
        for state in self._ready.values():
            bands[state.priority].append(state)
        highest, *lower = sorted(bands, reverse=True)
        share = 0
        if lower:
            share = max(1, seats // LOWER_SHARE) if seats >= LOWER_SHARE or self._turn % LOWER_SHARE == 0 else 0
        wants = self._spread(bands[highest], seats - share)
        if share:
            wants += self._spread(bands[lower[self._turn // LOWER_SHARE % len(lower)]], share)
        return wants

    def learn(self, wants: Sequence[Want], leases: Sequence[Lease]) -> None:
        """Remember what a claim brought: positions to go on from, queues that ran dry."""
        last: dict[str, Lease] = {}
        count: defaultdict[str, int] = defaultdict(int)
        for lease in leases:
            last[lease.queue_id] = lease
            count[lease.queue_id] += 1
        now = time.monotonic()
        for want in wants:
            state = self._known[want.queue_id]
            state.served = self._turn
            from_head = want.position is HEAD
            if from_head:
                state.head_at = now
            if count[want.queue_id] < want.seats:
                state.position = HEAD
                if from_head:
                    self._ready.pop(want.queue_id, None)
            else:
                lease = last[want.queue_id]
                state.position = Position(-lease.priority, lease.run_at, lease.job_id)

    def learn_gated(self, want: Want, count: int) -> None:
        """Remember that a claim from a gated queue brought so many: with none, it waits for a key, a place or time."""
        self._known[want.queue_id].served = self._turn
        if not count:
            self._ready.pop(want.queue_id, None)

    def _spread(self, band: list[QueueState], seats: int) -> list[Want]:
        if seats <= 0:
            return []
        self._fade()
        count = min(len(band), seats, max(QUEUES_AT_ONCE, -(-seats // SEATS_PER_QUEUE)))
        chosen = sorted(band, key=lambda s: (self._used_s[s.project_id], s.served, s.queue_id))[:count]
        each, rest = divmod(seats, count)
        return [self._want(state, each + (i < rest)) for i, state in enumerate(chosen)]

    def _want(self, state: QueueState, seats: int) -> Want:
        is_due = time.monotonic() - state.head_at >= HEAD_EVERY_S
        return Want(state.queue_id, seats, HEAD if is_due else state.position, state.is_gated)

    def _fade(self) -> None:
        """Old debts weigh less: halve them every few seconds."""
        now = time.monotonic()
        if now - self._used_at > 1:
            factor = 0.5 ** ((now - self._used_at) / HALF_LIFE_S)
            for project_id in list(self._used_s):
                self._used_s[project_id] *= factor
            self._used_at = now
