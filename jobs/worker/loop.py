"""The worker's loop: hands over what ended and takes what is next, one round trip at a time.

While seats are busy it gathers endings for a few milliseconds; when a seat is idle and work is known, it goes at once.
While one round trip is under way, a second is made ready if enough has ended by then.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from django.db import DatabaseError, InterfaceError

from jobs import metrics
from jobs.decisions import Interrupted, Unbegun
from jobs.lease import Ending, Lease
from jobs.lifecycle.claim import Claim, KnownTypes, Want, ready_queues, unanswered
from jobs.lifecycle.exchange import Handover, Takeaway
from jobs.lifecycle.settle import wake_for_given_back
from jobs.worker.announcer import Announcer, changes_of
from jobs.worker.config import WorkerConfig
from jobs.worker.endings import Endings
from jobs.worker.names import QueueNames
from jobs.worker.outbox import Outbox
from jobs.worker.pool import Pool
from jobs.worker.rates import Rates
from jobs.worker.roster import Roster
from jobs.worker.salvage import is_its_own_fault, settle_one_by_one
from jobs.worker.search import Search
from jobs.worker.wire import NotSent, Wire
from scheduler_project.lib import logs

log = logs.get(__name__)

#: So many endings are worth a second round trip behind the one that is under way.
SECOND_LEAST = 32
#: While one is under way nothing is due that does not wake the loop.
UNDER_WAY_S = 0.05
LINES_WAIT_S = 0.2
MARK_RUNNING_AFTER_S = 0.05
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
RECOVER_AGAIN_S = 5.0


class Loop:
    """One thread. Everything else talks to it by ``done``, ``hint`` and the flags."""

    def __init__(
        self,
        config: WorkerConfig,
        worker_id: str,
        types: KnownTypes,
        outbox: Outbox,
        on_dry: Callable[[], None],
        on_lease: Callable[[float], object] = float,  # by default nothing is made of it
    ) -> None:
        self._config, self._worker_id, self._types, self._outbox = config, worker_id, types, outbox
        self.pool: Pool  # set by the runtime: the pool's executor needs this loop first
        self.announcer: Announcer | None = None
        self._wake = threading.Event()
        self._roster, self._rates, self._names = Roster(), Rates(), QueueNames()
        self._search = Search(config, self._roster)
        self._wire = Wire(self._names, self._wake.set)
        self._endings = Endings()
        self._written: deque[Ending] = deque()  # by their handlers' own transactions
        #: Every lease of ours from its claim to the answer of its settle, by token.
        self._in_hand: dict[str, Lease] = {}
        self._pause_s = FIRST_PAUSE_S
        #: When to look for claims that were never answered.
        self._recover_at: list[float] = []
        self._turned_at = 0.0
        self._must_turn = False
        self._over_by = 0.0
        self._is_claiming = True
        self._is_over = False
        self._on_dry, self._on_lease = on_dry, on_lease
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)

    # -- from other threads ------------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin to claim."""
        self._thread.start()

    def done(self, lease: Lease, ending: Ending | None) -> None:
        """An attempt is over; without an ending its lease was lost and its result is dropped."""
        if ending is None or ending.written is not None:
            if ending is None:
                self._in_hand.pop(lease.token, None)
                self._count_lost([lease.job_id])
            else:
                self._written.append(ending)
            self._must_turn = True
            self._wake.set()
            return
        if self._endings.add(ending):
            self._wake.set()

    def idle(self) -> None:
        """A seat has nothing to do."""
        self._wake.set()

    def hint(self, queue_id: str) -> None:
        """A queue may have work; an empty id means: any may."""
        self._search.hint(queue_id)
        self._wake.set()

    def stop_claiming(self) -> None:
        """Take nothing new; what is in hand goes on. Jobs that have not begun go back."""
        self._is_claiming = False
        self.pool.close()
        self._must_turn = True
        self._wake.set()

    def finish(self, timeout_s: float) -> None:
        """Hand over what is left and end the thread; an outage is waited for as long."""
        self._over_by = time.monotonic() + timeout_s
        self._is_over = True
        self._wake.set()
        self._thread.join(timeout_s + LONGEST_PAUSE_S)

    def in_hand(self) -> list[Lease]:
        """The leases to extend."""
        return list(self._in_hand.values())

    def lease_of(self, token: str) -> Lease | None:
        """The lease of a token that is in hand."""
        return self._in_hand.get(token)

    def pending_tokens(self) -> set[str]:
        """The tokens of endings that are not known to be written."""
        return {ending.token for ending in [*self._endings, *self._wire.endings()]}

    # -- the thread --------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while True:
            self._wait()
            # The buffer too: a claim under way at the signal was answered after it.
            is_left = self._endings or self._written or self._outbox or self.pool.buffered or self._wire
            if self._is_over and not is_left:
                self._wire.close()
                return
            try:
                self._turn()
                self._pause_s = FIRST_PAUSE_S
            except NotSent:
                continue  # the one that failed is the next to be dealt with
            except _Refused:
                self._rest()
            except (DatabaseError, InterfaceError) as error:
                if self._is_over and time.monotonic() > self._over_by:
                    log.error("endings_not_written", count=len(self._endings), error=str(error))
                    return
                self._database_is_away(error)
            except Exception:  # boundary: a fault of ours must not end the worker silently
                log.exception("loop_failed")
                self._recover_at = [0.0]
                self._rest()

    def _wait(self) -> None:
        """Return when a round trip is worth making."""
        while True:
            now = time.monotonic()
            if self._is_due(now):
                return
            self._wake.wait(self._look_again_in_s(now))
            self._wake.clear()

    def _is_due(self, now: float) -> bool:
        if self._wire:
            return self._wire.is_answered or self._is_worth_a_second()
        if self._must_turn or self._is_over or self._is_starving():
            return True
        if self._endings.due_in_s(now) <= 0 or (self._is_claiming and self._search.is_due(now)):
            return True
        if self._recover_at and now >= self._recover_at[0]:
            return True
        waits_s = now - self._turned_at
        has_marks = self.pool.unmarked or self.pool.buffered
        return bool((has_marks and waits_s >= MARK_RUNNING_AFTER_S) or (self._outbox and waits_s >= LINES_WAIT_S))

    def _look_again_in_s(self, now: float) -> float:
        """How long nothing can become due that does not wake this thread."""
        if self._wire:
            return UNDER_WAY_S
        if self._endings:
            return self._endings.due_in_s(now)
        if self.pool.unmarked or self.pool.buffered:
            longest = MARK_RUNNING_AFTER_S
        else:
            longest = LINES_WAIT_S if self.pool.busy else 1.0
        return max(0.0, min(longest, self._search.next_at - now)) if self._is_claiming else longest

    def _is_starving(self) -> bool:
        return bool(self._is_claiming and self._roster and self.pool.free and not self.pool.buffered)

    def _is_worth_a_second(self) -> bool:
        """Has so much ended while a round trip is under way that the server should find the next one waiting?"""
        if len(self._wire) != 1 or self._wire.has_failed or self._recover_at or self._config.mode == "once":
            return False
        return self._endings.are_many or (len(self._endings) >= SECOND_LEAST and not self.pool.buffered)

    def _turn(self) -> None:
        """Begin a round trip, if there is anything to say or to ask, and deal with those that are over."""
        self._turned_at = time.monotonic()
        if not self._wire:
            if self._recover_at and self._turned_at >= self._recover_at[0]:
                self._recover()
            self._begin()
        elif self._is_worth_a_second():
            self._begin()
        while self._wire.is_answered:
            self._take_answer()
        self._end_after_one()

    def _begin(self) -> None:
        if self._is_claiming:
            self._look_for_work()
        handover, gated = self._gather()
        if handover:
            self._wire.send(handover, gated)
        else:
            self._claim_gated(gated)

    def _take_answer(self) -> None:
        if self._wire.has_failed:
            self._fail()
        trip = self._wire.take()
        self._apply(trip.handover, trip.answer.result())
        self._claim_gated(trip.gated)

    def _fail(self) -> NoReturn:
        """A round trip has failed: what was in hand must not be forgotten, whatever went wrong."""
        error, handovers = self._wire.take_failed()
        for handover in reversed(handovers):
            self._put_back(handover)
        if not (isinstance(error, Exception) and is_its_own_fault(error)):
            raise error
        count = len(handovers[0].endings)
        log.error("exchange_refused", exc_info=error, error=str(error), endings=count)
        self._salvage(count)
        raise _Refused from error

    def _salvage(self, count: int) -> None:
        """One ending that can not be written must not keep the others: write them one by one. Lines are lost."""
        self._outbox.empty()
        endings = self._endings.take_some(count)
        written = 0
        alone = settle_one_by_one(endings)
        try:
            while ending := self._wire.call(next, alone, None):
                self._in_hand.pop(ending.token, None)
                written += 1
        finally:
            self._endings.put_back(endings[written:])

    def _look_for_work(self) -> None:
        has_asked = self._search.look(partial(self._wire.call, ready_queues, self._config.queue_ids, self._types))
        if has_asked and not (self._roster or self.pool.busy or self.pool.buffered or self._endings or self._wire):
            self._on_dry()

    def _take_written(self) -> None:
        while self._written:
            ending = self._written.popleft()
            self._account([ending])
            self._in_hand.pop(ending.token, None)
            metrics.count_settled({ending.job_id: ending.written.status} if ending.written else {})
            self._give_back(ending.written.open_circuits if ending.written else frozenset())

    def _gather(self) -> tuple[Handover, list[Want]]:
        self._must_turn = False
        self._take_written()
        back = self.pool.take_back(stale_only=self._is_claiming)
        self._endings.add_all(Ending.of(lease, Unbegun(), self._worker_id) for lease in back)
        endings = self._endings.take()
        self._account(endings)
        lines, progress = self._outbox.empty()
        begun = self.pool.begun(MARK_RUNNING_AFTER_S) if self.pool.unmarked else []
        claim, gated = self._claim()
        return Handover(endings, begun, lines, progress, claim, time.monotonic()), gated

    def _account(self, endings: list[Ending]) -> None:
        """Count the time used and note the room made, before the claim is planned."""
        for ending in endings:
            lease = self._in_hand.get(ending.token)
            if lease is not None and ending.ran_ms is not None:
                self._roster.charge(lease.queue_id, ending.ran_ms)
                self._roster.touch(lease.queue_id)
        self._rates.note(endings)

    def _claim(self) -> tuple[Claim | None, list[Want]]:
        if not self._is_claiming:
            return None, []
        free = self.pool.free - self.pool.buffered - self._wire.seats
        ahead = self._rates.prefetch() if self._config.mode != "once" else 0
        planned = self._roster.plan(free + ahead if self._config.mode != "once" else min(1, free), self.in_hand())
        wants = [want for want in planned if not want.is_gated]
        # None is marked running here: a handler has begun when its seat says so, not when its job was claimed.
        claim = Claim(self._worker_id, wants, self._types, starts=0) if wants else None
        return claim, [want for want in planned if want.is_gated]

    def _end_after_one(self) -> None:
        if self._config.mode == "once" and not self._is_claiming and not self._in_hand:
            self._on_dry()

    def _apply(self, handover: Handover, takeaway: Takeaway) -> None:
        given_back = {
            self._in_hand[e.token].queue_id
            for e in handover.endings
            if isinstance(e.verdict, Unbegun | Interrupted) and e.token in self._in_hand
        }
        if self.announcer is not None and not self.announcer.is_idle:
            self.announcer.add(changes_of(handover, takeaway, self._in_hand))
        for ending in handover.endings:
            self._in_hand.pop(ending.token, None)
        self._count_lost([ending.job_id for ending in takeaway.settled.lost])
        metrics.count_settled(takeaway.settled.statuses)
        if handover.claim:
            self._roster.learn(handover.claim.wants, takeaway.leases)
        self._take(takeaway.leases)
        if takeaway.settled.open_circuits:
            self._give_back(takeaway.settled.open_circuits)
        if given_back:
            self._wire.call(wake_for_given_back, given_back)

    def _take(self, leases: list[Lease]) -> None:
        if not leases:
            return
        self._in_hand.update((lease.token, lease) for lease in leases)
        metrics.count_claimed(self._worker_id, self._names.of([lease.queue_id for lease in leases]))
        if self._config.mode == "once":
            self._is_claiming = False
        self.pool.take(leases)
        self._on_lease(min(lease.lease_s for lease in leases))

    def _claim_gated(self, wants: Sequence[Want]) -> None:
        for want in wants if self._is_claiming else ():
            taken = self._wire.claim_gated(Claim(self._worker_id, [want], self._types, starts=0), want)
            self._roster.learn_gated(want, len(taken.leases))
            self._take(taken.leases)
            if taken.wait_s:
                self._search.poll_by(time.monotonic() + taken.wait_s)

    def _give_back(self, circuits: frozenset[tuple[str, str]]) -> None:
        """A circuit has opened: what was claimed ahead of it must not call its target any more."""
        hit = {t for t, held in self._in_hand.items() if held.circuit and (held.project_id, held.circuit) in circuits}
        self._endings.add_all(Ending.of(lease, Unbegun(), self._worker_id) for lease in self.pool.drop(hit))

    def _count_lost(self, job_ids: list[str]) -> None:
        metrics.REFUSED.inc(len(job_ids))
        for job_id in job_ids:
            log.warning("late_result_refused", job_id=job_id, reason="lease lost")

    # -- when the database is away -----------------------------------------------------------------------------
    def _put_back(self, handover: Handover) -> None:
        self._endings.put_back(handover.endings)
        self._outbox.put_back(list(handover.lines), list(handover.progress))
        for lease in handover.begun:
            self.pool.unmarked.setdefault(lease.token, (lease, 0.0))

    def _database_is_away(self, error: Exception) -> None:
        log.warning(
            "database_away", error=str(error).strip(), retry_in_s=round(self._pause_s, 2), waiting=len(self._endings)
        )
        self._wire.drop()
        # Twice: the claim of a connection that broke may be committed only after the first look.
        self._recover_at = [0.0, time.monotonic() + RECOVER_AGAIN_S]
        self._search.poll_by(0.0)
        self._rest()

    def _rest(self) -> None:
        time.sleep(self._pause_s * random.uniform(0.8, 1.2))  # noqa: S311 - spreads the returning workers only
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)

    def _recover(self) -> None:
        """Give back what was claimed by a round trip whose answer never came."""
        endings = self._wire.call(unanswered, self._worker_id, list(self._in_hand), 0.0)
        self._recover_at.pop(0)
        if endings:
            log.info("unanswered_claims_given_back", count=len(endings))
            self._endings.add_all(endings)


class _Refused(Exception):
    """The database refused what was sent; the rest of it has been dealt with."""
