"""A child: a process that runs handlers one after another, in its main thread, and can be killed.

It gets an order, the lease and its limits, and answers with what the handler says while it runs and with the verdict.
A thread listens meanwhile: the worker may ask the handler to stop, or throw an exception into it.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
import threading
from queue import SimpleQueue
from typing import Any

from jobs.decisions import Failed, Verdict
from jobs.handlers.base import JobContext, Stopped, StopReason
from jobs.handlers.registry import find_handler
from jobs.lease import Ending, Lease
from jobs.worker.executor import Executor
from jobs.worker.isolation.wire import Message, Wire, packed
from jobs.worker.outbox import Outbox
from scheduler_project.lib import logs

log = logs.get(__name__)

MIB = 2**20
#: Interrupts a call of the system the handler sits in, so that it takes what was thrown.
NUDGE = signal.SIGUSR1


class Pipe(Outbox):
    """What the handler says goes to the worker at once; its lines do not if it writes them itself at its end."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def log(self, ctx: JobContext, level: str, message: str) -> None:
        """Send a line."""
        found = find_handler(ctx.job_type)
        if found is not None and found.is_transactional:
            super().log(ctx, level, message)
            return
        self._wire.send(log=[level, message])

    def progress(self, ctx: JobContext, percent: int, note: str | None) -> None:
        """Send how far it is."""
        self._wire.send(progress=[percent, note])

    def flush(self) -> None:
        """Send the lines of a handler that could not write them."""
        for line in self.empty()[0]:
            self._wire.send(log=[line.level, line.message])


class Child:
    """Runs what it is told until the worker has no more for it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._pipe = Pipe(wire)
        self._executor = Executor("", self._pipe, self._done)
        self._orders: SimpleQueue[Message | None] = SimpleQueue()
        self._is_busy = False
        self._ending: Ending | None = None

    def run(self) -> None:
        """Serve."""
        signal.signal(NUDGE, lambda *_: None)
        threading.Thread(target=self._listen, name="orders", daemon=True).start()
        quiet = threading.active_count()
        while (order := self._orders.get()) is not None:
            self._executor.worker_id = order["worker_id"]
            self._perform(Lease._make(order["lease"]), order["memory_mb"])
            verdict = self._verdict(order["memory_mb"])
            self._is_busy = False
            self._pipe.flush()
            self._wire.send(
                end=None if verdict is None else packed(verdict),
                written=self._written(),
                is_clean=threading.active_count() == quiet,
            )

    def _listen(self) -> None:
        try:
            while (message := self._wire.receive()) is not None:
                self._hear(message)
        finally:  # the worker has gone, or lets us go; or there is no memory to listen with
            if self._is_busy:
                os.killpg(0, signal.SIGKILL)  # with all that was started here
            self._orders.put(None)

    def _hear(self, message: Message) -> None:
        if "lease" in message:
            self._is_busy = True
            self._orders.put(message)
            return
        for ctx in list(self._executor.running.values()):
            if "stop" in message:
                ctx.stop(message["stop"])
                ctx.wake()
            else:
                _Forced.why = message["force"]
                ctx.force(_Forced)
                signal.pthread_kill(threading.main_thread().ident or 0, NUDGE)

    def _done(self, lease: Lease, ending: Ending | None) -> None:
        self._ending = ending

    def _perform(self, lease: Lease, memory_mb: int) -> None:
        self._ending = None
        found = find_handler(lease.job_type)
        with Memory(memory_mb):
            if found is not None and found.is_async:
                asyncio.run(self._run_async(lease))
            else:
                self._executor.run_sync(lease)

    def _verdict(self, memory_mb: int) -> Verdict | None:
        """How the last attempt ended; want of memory has a name of ours."""
        verdict = None if self._ending is None else self._ending.verdict
        if isinstance(verdict, Failed) and verdict.error.startswith("MemoryError"):
            more = f": the handler wanted more than its {memory_mb} MB" if memory_mb else ""
            return Failed(f"OutOfMemory{more}", verdict.stack)
        return verdict

    def _written(self) -> Message | None:
        written = None if self._ending is None else self._ending.written
        if written is None:
            return None
        return {"status": written.status, "open_circuits": sorted(written.open_circuits)}

    async def _run_async(self, lease: Lease) -> None:
        await asyncio.wait([asyncio.create_task(self._executor.run_async(lease))])


class Memory:
    """A limit for what a handler takes beyond what the process has already; 0 is none."""

    def __init__(self, memory_mb: int) -> None:
        self._bytes = memory_mb * MIB
        self._before: tuple[int, int] | None = None

    def __enter__(self) -> None:
        if self._bytes and sys.platform == "linux":
            self._before = resource.getrlimit(resource.RLIMIT_AS)
            with open("/proc/self/statm") as sizes:
                now = int(sizes.read().split()[0]) * resource.getpagesize()
            hard = self._before[1]
            wanted = now + self._bytes
            soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            resource.setrlimit(resource.RLIMIT_AS, self._before)


class _Forced(Stopped):
    """Stopped, in the form in which it can be thrown into a thread."""

    why: StopReason = "timeout"

    def __init__(self) -> None:
        super().__init__(self.why)


def serve(fd: int) -> None:
    """Serve the worker over a socket."""
    Child(Wire(socket.socket(fileno=fd))).run()
