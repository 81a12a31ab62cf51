"""The commands that each peer's program knows, for a peer that lives on an event loop.

    program.py install URL          make the peer's tables
    program.py work URL             run one worker until SIGTERM
    program.py bulk URL COUNT       submit many at once, by the peer's own call for it
    program.py single URL COUNT     submit one by one, each with its commit
    program.py spaced URL COUNT     the same with pauses; when each was committed

What it found is written as JSON.
"""

from __future__ import annotations

import asyncio
import sys
import time
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from jobs.bench.peers.handled import Handled, tell

#: Calls of ``submit_many`` of this size; each is a transaction.
AT_ONCE = 1_000
APART_S = 0.06
WARM_UP = 20


class Peer(ABC):
    """A peer, connected to a database."""

    @abstractmethod
    async def install(self) -> None:
        """Make its tables."""

    @abstractmethod
    async def work(self, handled: Handled) -> None:
        """Run a worker, with the settings that suit jobs that do nothing best."""

    @abstractmethod
    async def submit(self, number: int) -> None:
        """One job, committed on return. A negative number means: nobody waits for it."""

    @abstractmethod
    async def submit_many(self, count: int) -> None:
        """So many in one call."""


async def obey(connected: AbstractAsyncContextManager[Peer], command: str, count: int) -> None:
    """Do what the command line says."""
    async with connected as peer:
        if command == "install":
            await peer.install()
        elif command == "work":
            handled = Handled()
            handled.tell_at_the_end()
            await peer.work(handled)
        elif command == "bulk":
            began = time.perf_counter()
            for _ in range(count // AT_ONCE):
                await peer.submit_many(AT_ONCE)
            tell(rate=count // AT_ONCE * AT_ONCE / (time.perf_counter() - began))
        elif command == "single":
            for _ in range(WARM_UP):
                await peer.submit(-1)
            began = time.perf_counter()
            for _ in range(count):
                await peer.submit(-1)
            tell(rate=count / (time.perf_counter() - began))
        elif command == "spaced":
            tell(committed=await _spaced(peer, count))
        else:
            raise SystemExit(f"unknown command {command!r}: install, work, bulk, single or spaced")


async def _spaced(peer: Peer, count: int) -> dict[int, float]:
    committed = {}
    for number in range(count):
        await peer.submit(number)
        committed[number] = time.time()
        await asyncio.sleep(APART_S)
    return committed


def asked() -> tuple[str, str, int]:
    """Command, address of the database and count of the command line."""
    command, url, *rest = sys.argv[1:]
    return command, url, int(rest[0]) if rest else 0
