"""Seats: where handlers run, sync ones in threads, async ones on an event loop, with a small buffer before them.

A handler in a process of its own has a thread here that looks after it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from queue import SimpleQueue

from jobs.handlers.registry import find_handler
from jobs.lease import Lease
from jobs.worker.executor import Executor, is_isolated
from scheduler_project.lib import logs

log = logs.get(__name__)

#: A prefetched job that has waited so long goes back: another worker may have a seat for it.
STALE_S = 1.0


class Pool:
    """At most ``seats`` handlers at once; what was claimed beyond that waits in the buffer, under live leases."""

    def __init__(self, seats: int, executor: Executor, on_idle: Callable[[], None]) -> None:
        self._seats, self._executor, self._on_idle = seats, executor, on_idle
        self._lock = threading.Lock()
        self._buffer: deque[tuple[Lease, float]] = deque()
        self._busy = 0
        self._threads = 0
        #: Jobs in threads or on their way to one: never more than threads, so none waits behind another's job.
        self._in_threads = 0
        self._inbox: SimpleQueue[Lease] = SimpleQueue()
        self._loop = _LoopThread()
        self._is_closed = False
        #: Handlers that were given up and have not come back.
        self.ghosts = 0
        #: Jobs given to a seat and whose row still says claimed: token -> (lease, since).
        self.unmarked: dict[str, tuple[Lease, float]] = {}

    # -- what the loop asks ------------------------------------------------------------------------------------
    @property
    def busy(self) -> int:
        """Handlers running now."""
        return self._busy

    @property
    def buffered(self) -> int:
        """Jobs claimed and not begun."""
        return len(self._buffer)

    @property
    def free(self) -> int:
        """Seats without a job."""
        return max(0, self._seats - self._busy)

    # -- what the loop does ------------------------------------------------------------------------------------
    def take(self, leases: list[Lease]) -> None:
        """Run these jobs, now or as soon as a seat is free."""
        now = time.monotonic()
        with self._lock:
            self._buffer.extend((lease, now) for lease in leases)
            self._fill()

    def close(self) -> None:
        """Begin nothing more; what has begun goes on."""
        with self._lock:
            self._is_closed = True

    def take_back(self, *, stale_only: bool) -> list[Lease]:
        """Remove the jobs that have not begun (or only those that have waited too long) from the buffer."""
        limit = time.monotonic() - STALE_S if stale_only else float("inf")
        with self._lock:
            back = []
            while self._buffer and self._buffer[0][1] <= limit:
                back.append(self._buffer.popleft()[0])
            return back

    def drop(self, tokens: Collection[str]) -> list[Lease]:
        """Remove these jobs from the buffer, if they have not begun; those removed."""
        with self._lock:
            dropped = [lease for lease, _ in self._buffer if lease.token in tokens]
            if dropped:
                self._buffer = deque(item for item in self._buffer if item[0].token not in tokens)
        return dropped

    def abandon(self, lease: Lease) -> None:
        """Free the seat of an attempt that was given up; its handler goes on as a ghost, without a seat."""
        is_async = _is_async(lease)
        self.unmarked.pop(lease.token, None)
        with self._lock:
            self.ghosts += 1
            self._busy -= 1
            if not is_async:
                self._in_threads -= 1
                self._threads -= 1
            self._fill()
        self._on_idle()

    def _count_ghost(self, change: int) -> None:
        with self._lock:
            self.ghosts += change

    def begun(self, older_than_s: float) -> list[Lease]:
        """Jobs that have been running for a while and must now be marked so; none whose seat has yet to take it up."""
        limit = time.monotonic() - older_than_s
        running = self._executor.running
        old = [lease for lease, since in list(self.unmarked.values()) if since <= limit and lease.token in running]
        for lease in old:
            self.unmarked.pop(lease.token, None)
        return old

    def thread_ids(self) -> list[int]:
        """The threads that run sync handlers."""
        return [t.ident for t in threading.enumerate() if t.name.startswith("seat-") and t.ident]

    # -- seats -------------------------------------------------------------------------------------------------
    def _fill(self) -> None:
        """Give waiting jobs to free seats. The caller holds the lock."""
        while self._buffer and self._busy < self._seats and not self._is_closed:
            if _is_async(self._buffer[0][0]):
                self._busy += 1
                self._loop.call(self._run_task, self._next_from_buffer())
                continue
            if self._in_threads >= self._threads and not self._start_thread():
                return
            self._busy += 1
            self._in_threads += 1
            self._inbox.put(self._next_from_buffer())

    def _start_thread(self) -> bool:
        """One more seat; False if the system has no thread left, and the job stays in the buffer."""
        try:
            threading.Thread(target=self._seat, name=f"seat-{self._threads + 1}", daemon=True).start()
        except RuntimeError as error:
            log.error("seat_not_started", error=str(error), seats=self._threads)
            return False
        self._threads += 1
        return True

    def _next_from_buffer(self) -> Lease:
        lease, _ = self._buffer.popleft()
        self.unmarked[lease.token] = (lease, time.monotonic())
        return lease

    def _after(self, ended: Lease, *, is_async: bool) -> Lease | None:
        """A seat's job has ended: the next one for it, or None when there is none of its kind."""
        self.unmarked.pop(ended.token, None)
        with self._lock:
            if self._buffer and not self._is_closed and _is_async(self._buffer[0][0]) is is_async:
                return self._next_from_buffer()
            self._busy -= 1
            self._in_threads -= not is_async
            self._fill()
        self._on_idle()
        return None

    def _seat(self) -> None:
        while True:
            lease: Lease | None = self._inbox.get()
            while lease is not None:
                if not self._executor.run_sync(lease):
                    self._count_ghost(-1)
                    return  # this thread's seat was given to another
                lease = self._after(lease, is_async=False)

    def _run_task(self, lease: Lease) -> None:
        self._loop.spawn(self._run_on_loop(lease))

    async def _run_on_loop(self, first: Lease) -> None:
        lease: Lease | None = first
        while lease is not None:
            # A task of its own, so that a handler's cancellation ends with the handler; awaited by ``wait``, which
            # goes on even after a task that was cancelled at its very end.
            running = asyncio.create_task(self._executor.run_async(lease))
            await asyncio.wait([running])
            if not running.cancelled() and not running.result():
                self._count_ghost(-1)
                return
            lease = self._after(lease, is_async=True)


def _is_async(lease: Lease) -> bool:
    found = find_handler(lease.job_type)
    return found is not None and found.is_async and not is_isolated(lease, found)


class _LoopThread:
    """An event loop in a thread, started when the first async handler needs it."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def call(self, function: Callable[[Lease], None], lease: Lease) -> None:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, name="event-loop", daemon=True).start()
        self._loop.call_soon_threadsafe(function, lease)

    def spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)  # the loop itself keeps only weak references
        task.add_done_callback(self._tasks.discard)
