"""The worker's loop: hands over what ended and takes what is next, one round trip at a time.

Endings that come close together travel together (group commit): while seats are busy the loop gathers them for a few
milliseconds; when a seat is idle and work is known, it goes at once.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError

from jobs import metrics
from jobs.decisions import Interrupted, Succeeded, Unbegun
from jobs.lease import Ending, Lease
from jobs.lifecycle.claim import Claim, KnownTypes, Want, ready_queues, unanswered
from jobs.lifecycle.claim_gated import claim_gated
from jobs.lifecycle.exchange import Handover, Takeaway, exchange
from jobs.lifecycle.settle import wake_for_given_back
from jobs.worker.announcer import Announcer, changes_of
from jobs.worker.config import WorkerConfig
from jobs.worker.names import QueueNames
from jobs.worker.outbox import Outbox
from jobs.worker.pool import Pool
from jobs.worker.rates import Rates
from jobs.worker.roster import Roster
from jobs.worker.salvage import is_its_own_fault, settle_one_by_one
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import drop_connection

log = logs.get(__name__)

GATHER_S = 0.003
GATHER_MOST = 250
LINES_WAIT_S = 0.2
MARK_RUNNING_AFTER_S = 0.05
#: After a hint, look again at these moments: the sender keeps quiet for a while after each one (jobs.hints).
LOOK_AGAIN_S = (0.005, 0.015, 0.03, 0.06)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
RECOVER_AGAIN_S = 5.0
#: Results of so many characters travel together, at most; a message to the server ends at 1 GB.
MOST_CHARS = 32 * 2**20


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
        self._roster, self._rates, self._names = Roster(), Rates(), QueueNames()
        self._wake = threading.Event()
        self._endings: deque[Ending] = deque()
        self._written: deque[Ending] = deque()  # by their handlers' own transactions
        self._first_ending_at = 0.0
        #: Every lease of ours from its claim to the answer of its settle, by token.
        self._in_hand: dict[str, Lease] = {}
        #: To be claimed from right after the round trip, each in a transaction of its own.
        self._gated: list[Want] = []
        self._hints: deque[str] = deque()
        self._look_at: list[float] = []
        self._next_poll = 0.0
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
        self._endings.append(ending)
        count = len(self._endings)
        if count == 1:
            self._first_ending_at = time.monotonic()
        if count == 1 or count == GATHER_MOST:
            self._wake.set()

    def idle(self) -> None:
        """A seat has nothing to do."""
        self._wake.set()

    def hint(self, queue_id: str) -> None:
        """A queue may have work; an empty id means: any may."""
        self._hints.append(queue_id)
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
        """The tokens of endings that are not written yet."""
        return {ending.token for ending in list(self._endings)}

    # -- the thread --------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while True:
            self._wait()
            # The buffer too: a claim under way at the signal was answered after it.
            if self._is_over and not (self._endings or self._written or self._outbox or self.pool.buffered):
                return
            try:
                self._turn()
                self._pause_s = FIRST_PAUSE_S
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
                self._must_turn = False
                return
            self._wake.wait(self._look_again_in_s(now))
            self._wake.clear()

    def _is_due(self, now: float) -> bool:
        if self._must_turn or self._is_over or self._is_starving():
            return True
        if self._endings and (len(self._endings) >= GATHER_MOST or now >= self._first_ending_at + GATHER_S):
            return True
        if self._is_claiming and (self._hints or now >= self._next_look()):
            return True
        if self._recover_at and now >= self._recover_at[0]:
            return True
        waits_s = now - self._turned_at
        has_marks = self.pool.unmarked or self.pool.buffered
        return bool((has_marks and waits_s >= MARK_RUNNING_AFTER_S) or (self._outbox and waits_s >= LINES_WAIT_S))

    def _look_again_in_s(self, now: float) -> float:
        """How long nothing can become due that does not wake this thread."""
        if self._endings:
            return max(0.0, self._first_ending_at + GATHER_S - now)
        if self.pool.unmarked or self.pool.buffered:
            longest = MARK_RUNNING_AFTER_S
        else:
            longest = LINES_WAIT_S if self.pool.busy else 1.0
        return max(0.0, min(longest, self._next_look() - now)) if self._is_claiming else longest

    def _next_look(self) -> float:
        return min(self._next_poll, self._look_at[0]) if self._look_at else self._next_poll

    def _is_starving(self) -> bool:
        return bool(self._is_claiming and self._roster and self.pool.free and not self.pool.buffered)

    def _turn(self) -> None:
        """One round trip, if there is anything to say or to ask."""
        self._turned_at = time.monotonic()
        if self._recover_at and self._turned_at >= self._recover_at[0]:
            self._recover()
        if self._is_claiming:
            self._look_for_work()
        handover = self._gather()
        if handover:
            self._exchange(handover)
        for want in self._gated:
            self._claim_gated(want)
        self._end_after_one()

    def _exchange(self, handover: Handover) -> None:
        try:
            began = time.monotonic()
            takeaway = exchange(handover)
            if handover.claim:
                metrics.CLAIM_S.observe(time.monotonic() - began)
        except Exception as error:  # boundary: what is in hand must not be forgotten, whatever went wrong
            self._put_back(handover)
            if not is_its_own_fault(error):
                raise
            log.exception("exchange_refused", error=str(error), endings=len(handover.endings))
            self._salvage(len(handover.endings))
            raise _Refused from error
        self._apply(handover, takeaway)

    def _salvage(self, count: int) -> None:
        """One ending that can not be written must not keep the others: write them one by one. Lines are lost."""
        self._outbox.empty()
        endings = [self._endings.popleft() for _ in range(count)]
        written = 0
        try:
            for ending in settle_one_by_one(endings):
                self._in_hand.pop(ending.token, None)
                written += 1
        finally:
            self._endings.extendleft(reversed(endings[written:]))

    def _look_for_work(self) -> None:
        now = time.monotonic()
        must_ask = now >= self._next_poll
        while self._look_at and self._look_at[0] <= now:
            self._look_at.pop(0)
            must_ask = must_ask or not self._roster
        while self._hints:
            queue_id = self._hints.popleft()
            if queue_id and self._config.queue_ids is not None and queue_id not in self._config.queue_ids:
                continue
            self._look_at = [now + s for s in LOOK_AGAIN_S]
            must_ask = must_ask or not queue_id or not self._roster.touch(queue_id)
        if must_ask:
            self._next_poll = now + self._config.poll_s * random.uniform(0.8, 1.2)  # noqa: S311 - spreads polls only
            self._roster.refresh(ready_queues(self._config.queue_ids, self._types, self._roster.full()))
            if not self._roster and not self.pool.busy and not self.pool.buffered and not self._endings:
                self._on_dry()

    def _take_written(self) -> None:
        while self._written:
            ending = self._written.popleft()
            self._account([ending])
            self._in_hand.pop(ending.token, None)
            metrics.count_settled({ending.job_id: ending.written.status} if ending.written else {})
            self._give_back(ending.written.open_circuits if ending.written else frozenset())

    def _gather(self) -> Handover:
        self._take_written()
        for lease in self.pool.take_back(stale_only=self._is_claiming):
            self._endings.append(Ending.of(lease, Unbegun(), self._worker_id))
        endings = self._take_endings()
        self._account(endings)
        lines, progress = self._outbox.empty()
        begun = self.pool.begun(MARK_RUNNING_AFTER_S) if self.pool.unmarked else []
        return Handover(endings, begun, lines, progress, self._claim(), time.monotonic())

    def _take_endings(self) -> list[Ending]:
        """Those that have come, up to a size. One by one: seats append at any moment, a swap could lose one."""
        endings, size = [], 0
        while self._endings and size < MOST_CHARS:
            ending = self._endings.popleft()
            endings.append(ending)
            if isinstance(ending.verdict, Succeeded):
                size += len(ending.verdict.result_json or "")
        return endings

    def _account(self, endings: list[Ending]) -> None:
        """Count the time used and note the room made, before the claim is planned."""
        for ending in endings:
            lease = self._in_hand.get(ending.token)
            if lease is not None and ending.ran_ms is not None:
                self._roster.charge(lease.queue_id, ending.ran_ms)
                self._roster.touch(lease.queue_id)
        self._rates.note(endings)

    def _claim(self) -> Claim | None:
        self._gated = []
        if not self._is_claiming:
            return None
        free = self.pool.free - self.pool.buffered
        ahead = self._rates.prefetch() if self._config.mode != "once" else 0
        planned = self._roster.plan(free + ahead if self._config.mode != "once" else min(1, free), self.in_hand())
        self._gated = [want for want in planned if want.is_gated]
        wants = [want for want in planned if not want.is_gated]
        # None is marked running here: a handler has begun when its seat says so, not when its job was claimed.
        return Claim(self._worker_id, wants, self._types, starts=0) if wants else None

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
        if given_back:
            wake_for_given_back(given_back)
        if handover.claim:
            self._roster.learn(handover.claim.wants, takeaway.leases)
        self._take(takeaway.leases)
        if takeaway.settled.open_circuits:
            self._give_back(takeaway.settled.open_circuits)

    def _take(self, leases: list[Lease]) -> None:
        if not leases:
            return
        self._in_hand.update((lease.token, lease) for lease in leases)
        metrics.count_claimed(self._worker_id, self._names.of([lease.queue_id for lease in leases]))
        if self._config.mode == "once":
            self._is_claiming = False
        self.pool.take(leases)
        self._on_lease(min(lease.lease_s for lease in leases))

    def _claim_gated(self, want: Want) -> None:
        if not self._is_claiming:
            return
        taken = claim_gated(Claim(self._worker_id, [want], self._types, starts=0), want)
        self._roster.learn_gated(want, len(taken.leases))
        self._take(taken.leases)
        if taken.wait_s:
            self._next_poll = min(self._next_poll, time.monotonic() + taken.wait_s)

    def _give_back(self, circuits: frozenset[tuple[str, str]]) -> None:
        """A circuit has opened: what was claimed ahead of it must not call its target any more."""
        hit = {t for t, held in self._in_hand.items() if held.circuit and (held.project_id, held.circuit) in circuits}
        for lease in self.pool.drop(hit):
            self._endings.append(Ending.of(lease, Unbegun(), self._worker_id))

    def _count_lost(self, job_ids: list[str]) -> None:
        metrics.REFUSED.inc(len(job_ids))
        for job_id in job_ids:
            log.warning("late_result_refused", job_id=job_id, reason="lease lost")

    # -- when the database is away -----------------------------------------------------------------------------
    def _put_back(self, handover: Handover) -> None:
        self._endings.extendleft(reversed(handover.endings))
        self._first_ending_at = time.monotonic()
        self._outbox.put_back(list(handover.lines), list(handover.progress))
        for lease in handover.begun:
            self.pool.unmarked.setdefault(lease.token, (lease, 0.0))

    def _database_is_away(self, error: Exception) -> None:
        log.warning(
            "database_away", error=str(error).strip(), retry_in_s=round(self._pause_s, 2), waiting=len(self._endings)
        )
        drop_connection()
        # Twice: the claim of a connection that broke may be committed only after the first look.
        self._recover_at = [0.0, time.monotonic() + RECOVER_AGAIN_S]
        self._next_poll = 0.0
        self._rest()

    def _rest(self) -> None:
        time.sleep(self._pause_s * random.uniform(0.8, 1.2))  # noqa: S311 - spreads the returning workers only
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)

    def _recover(self) -> None:
        """Give back what was claimed by a round trip whose answer never came."""
        endings = unanswered(self._worker_id, list(self._in_hand), settled_s=0.0)
        self._recover_at.pop(0)
        if endings:
            log.info("unanswered_claims_given_back", count=len(endings))
            self._endings.extend(endings)


class _Refused(Exception):
    """The database refused what was sent; the rest of it has been dealt with."""
