"""Which queues to claim from next, how many from each, and from where.

Between queues: bands of equal priority; the highest band with work gets most seats, every lower one a small share,
so that none starves. Inside a band each seat goes to the project that has used the least time, what its jobs in hand
will use counted by what such jobs used before (deficit round robin); then to the queue that was served longest ago.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, defaultdict, deque
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
#: What a job costs at least, and how far one job moves what its queue's jobs are expected to cost.
LEAST_S, LEARN = 0.0001, 0.2
#: Seats are given out in at most so many steps.
STEPS = 64


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
    #: Did the last claim bring all that was asked for, or all that the queue's limit allowed?
    is_full: bool = False
    #: What a job of it is expected to cost; None as long as none has ended here.
    cost_s: float | None = None


class Roster:
    """The queues believed to have work. Not safe for several threads: the loop's own."""

    def __init__(self) -> None:
        self._known: dict[str, QueueState] = {}
        self._ready: dict[str, QueueState] = {}
        self._turn = 0
        self._used_s: defaultdict[str, float] = defaultdict(float)
        #: What the project had used that was served last: who comes back begins here, idle time earns no credit.
        self._level_s = 0.0
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
        returning = {s.project_id for s in ready.values()} - {s.project_id for s in self._ready.values()}
        self._ready = ready
        for project in returning:
            self._come_back(project)

    def full(self) -> list[str]:
        """The queues that are known to have more work: they gave all that was asked for."""
        return [queue_id for queue_id, state in self._ready.items() if state.is_full]

    def touch(self, queue_id: str) -> bool:
        """A queue may have work or room again; False if it was never heard of."""
        state = self._known.get(queue_id)
        if state is None:
            return False
        if queue_id not in self._ready:
            if not state.is_full:
                state.position = HEAD
            self._ready[queue_id] = state
            self._come_back(state.project_id)
        return True

    def charge(self, queue_id: str, ran_ms: float) -> None:
        """Count the time a job took against its project."""
        state = self._known.get(queue_id)
        if state is not None:
            ran_s = max(ran_ms / 1000, LEAST_S)
            self._used_s[state.project_id] += ran_s
            state.cost_s = ran_s if state.cost_s is None else state.cost_s + LEARN * (ran_s - state.cost_s)

    def plan(self, seats: int, in_hand: Iterable[Lease] = ()) -> list[Want]:
        """Spread ``seats`` over the queues with work, as whose jobs are in hand already."""
        if not self._ready or seats <= 0:
            return []
        self._turn += 1
        if len(self._ready) == 1:
            [state] = self._ready.values()
            self._level_s = self._used_s[state.project_id]
            return [self._want(state, seats)]
        bands: defaultdict[int, list[QueueState]] = defaultdict(list)
        for state in self._ready.values():
            bands[state.priority].append(state)
        highest, *lower = sorted(bands, reverse=True)
        share = 0
        if lower:
            share = max(1, seats // LOWER_SHARE) if seats >= LOWER_SHARE or self._turn % LOWER_SHARE == 0 else 0
        self._fade()
        used_s = self._with_those(in_hand)
        wants = self._spread(bands[highest], seats - share, used_s)
        if share:
            wants += self._spread(bands[lower[self._turn // LOWER_SHARE % len(lower)]], share, used_s)
        return wants

    def learn(self, wants: Sequence[Want], leases: Sequence[Lease]) -> None:
        """Remember what a claim brought: positions to go on from, queues that ran dry or reached their limit."""
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
            newest = last.get(want.queue_id)
            room = min(want.seats, newest.room) if newest else want.seats
            state.is_full, state.position = count[want.queue_id] >= room, HEAD
            if newest and state.is_full:
                state.position = Position(-newest.priority, newest.run_at, newest.job_id)
            is_dry, is_at_limit = from_head and not state.is_full, room < want.seats
            if is_dry or is_at_limit:  # until one of its jobs ends here, or the next hint or poll
                self._ready.pop(want.queue_id, None)

    def learn_gated(self, want: Want, count: int) -> None:
        """Remember that a claim from a gated queue brought so many: with none, it waits for a key, a place or time."""
        self._known[want.queue_id].served = self._turn
        if not count:
            self._ready.pop(want.queue_id, None)

    def _spread(self, band: list[QueueState], seats: int, used_s: defaultdict[str, float]) -> list[Want]:
        if seats <= 0:
            return []
        count = min(len(band), seats, max(QUEUES_AT_ONCE, -(-seats // SEATS_PER_QUEUE)))
        chosen = sorted(band, key=lambda s: (used_s[s.project_id], s.served, s.queue_id))[:count]
        self._level_s = self._used_s[chosen[0].project_id]
        given = _deal(chosen, seats, used_s)
        return [self._want(state, given[state.queue_id]) for state in chosen if given[state.queue_id]]

    def _with_those(self, in_hand: Iterable[Lease]) -> defaultdict[str, float]:
        """The time each project has used, with what its jobs in hand are expected to use."""
        used_s = self._used_s.copy()
        for queue_id, count in Counter(lease.queue_id for lease in in_hand).items():
            if state := self._known.get(queue_id):
                used_s[state.project_id] += count * (state.cost_s or LEAST_S)
        return used_s

    def _come_back(self, project_id: str) -> None:
        self._used_s[project_id] = max(self._used_s[project_id], self._level_s)

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
            self._level_s *= factor
            self._used_at = now


def _deal(queues: Sequence[QueueState], seats: int, used_s: defaultdict[str, float]) -> Counter[str]:
    """Seats of each queue: one after the other to the project that will have used least, in turns within it."""
    known = [state.cost_s for state in queues if state.cost_s is not None]
    unknown_s = sum(known) / len(known) if known else LEAST_S
    lines: dict[str, deque[QueueState]] = {}
    for state in queues:
        lines.setdefault(state.project_id, deque()).append(state)
    heap = [(used_s[project_id], turn, line) for turn, (project_id, line) in enumerate(lines.items())]
    heapq.heapify(heap)
    given: Counter[str] = Counter()
    step = max(1, seats // STEPS)
    while seats > 0:
        used, turn, line = heap[0]
        state, many = line[0], min(step, seats)
        line.rotate(-1)
        given[state.queue_id] += many
        seats -= many
        used_s[state.project_id] = used + many * (unknown_s if state.cost_s is None else state.cost_s)
        heapq.heapreplace(heap, (used_s[state.project_id], turn, line))
    return given
