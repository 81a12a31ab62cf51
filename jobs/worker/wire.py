"""The loop's way to the database: one connection, in a thread of its own, one round trip after the other.

So the next round trip is made ready while one is under way, and what one brought is dealt out during the next: the
server need not wait for us between two.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from jobs import metrics
from jobs.lease import Ending
from jobs.lifecycle.claim import Claim, Want
from jobs.lifecycle.claim_gated import Gated, claim_gated
from jobs.lifecycle.exchange import Handover, Takeaway, exchange
from jobs.worker.names import QueueNames
from scheduler_project.lib.dbthreads import drop_connection

T = TypeVar("T")


class NotSent(Exception):
    """A round trip before this one failed: this one was not begun."""


@dataclass(frozen=True, slots=True)
class Trip:
    """A round trip under way. From the ``gated`` queues is claimed behind it, each in a transaction of its own."""

    handover: Handover
    gated: list[Want]
    answer: Future[Takeaway]


class Wire:
    """Does what it is given, in order. When a round trip fails, those behind it are not begun.

    ``send``, ``call`` and what they bring are for one thread, the loop's.
    """

    def __init__(self, names: QueueNames, on_answer: Callable[[], None], thread: Executor | None = None) -> None:
        self._names, self._on_answer = names, on_answer
        self._thread = thread or ThreadPoolExecutor(1, "wire")
        self._trips: deque[Trip] = deque()
        self._is_down = False

    def __len__(self) -> int:
        return len(self._trips)

    @property
    def is_answered(self) -> bool:
        """Is the first round trip over?"""
        return bool(self._trips) and self._trips[0].answer.done()

    @property
    def has_failed(self) -> bool:
        """Is the first round trip over, and has brought an error?"""
        return self.is_answered and self._trips[0].answer.exception() is not None

    @property
    def seats(self) -> int:
        """So many jobs are asked for."""
        claims = [trip.handover.claim for trip in self._trips]
        return sum(want.seats for claim in claims if claim for want in claim.wants)

    def endings(self) -> Iterator[Ending]:
        """What is being written; from any thread."""
        for trip in list(self._trips):
            yield from trip.handover.endings

    def send(self, handover: Handover, gated: list[Want]) -> None:
        """Begin a round trip as soon as those before it are over."""
        answer = self._thread.submit(self._travel, handover)
        self._trips.append(Trip(handover, gated, answer))
        answer.add_done_callback(lambda _: self._on_answer())

    def take(self) -> Trip:
        """Take the first round trip, which is over and has not failed."""
        return self._trips.popleft()

    def take_failed(self) -> tuple[BaseException, list[Handover]]:
        """Take all: the error of the first round trip, and what they carried, of which nothing is written.

        Then it is ready for others.
        """
        trips = list(self._trips)
        error = trips[0].answer.exception()
        for trip in trips:
            trip.answer.exception()  # until it is over
        self._trips.clear()
        self._is_down = False
        assert error is not None  # noqa: S101 - who calls has looked
        return error, [trip.handover for trip in trips]

    def call(self, function: Callable[..., T], *args: object) -> T:
        """Do something else with the connection, and wait for it.

        Raises:
            NotSent: a round trip before it failed.
        """
        return self._thread.submit(self._call, partial(function, *args)).result()

    def claim_gated(self, claim: Claim, want: Want) -> Gated:
        """Claim from a gated queue, and wait for it; raises as ``call``."""
        return self.call(self._claim_gated, claim, want)

    def drop(self) -> None:
        """Close the connection; the next round trip opens a new one."""
        self._thread.submit(drop_connection).result()

    def close(self) -> None:
        """End the thread and its connection."""
        self.drop()
        self._thread.shutdown()

    # -- in the thread -----------------------------------------------------------------------------------------
    def _travel(self, handover: Handover) -> Takeaway:
        try:
            return self._call(partial(self._exchange, handover))
        except BaseException:  # boundary: whatever it was, what comes behind must not be begun
            self._is_down = True
            raise

    def _exchange(self, handover: Handover) -> Takeaway:
        began = handover.now = time.monotonic()
        takeaway = exchange(handover)
        if handover.claim:
            metrics.CLAIM_S.observe(time.monotonic() - began)
        self._names.learn(lease.queue_id for lease in takeaway.leases)
        return takeaway

    def _claim_gated(self, claim: Claim, want: Want) -> Gated:
        taken = claim_gated(claim, want)
        self._names.learn(lease.queue_id for lease in taken.leases)
        return taken

    def _call(self, function: Callable[[], T]) -> T:
        if self._is_down:
            raise NotSent
        return function()
