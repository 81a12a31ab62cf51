"""PgQueuer, as a program of its own Python: see program.py.

Its fastest driver and loop, a batch of the size of our own claims, and its log of each job, as it is by default.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from jobs.bench.peers.handled import Handled
from jobs.bench.peers.program import Peer, asked, obey

BATCH = 100


class PgQueuer(Peer):
    """One connection."""

    def __init__(self, driver: AsyncpgDriver) -> None:
        self._driver, self._queries = driver, Queries(driver)

    async def install(self) -> None:
        """Make its tables."""
        await self._queries.install()

    async def work(self, handled: Handled) -> None:
        """One worker; asynchronous handlers are its fast way."""
        manager = QueueManager(self._queries)

        @manager.entrypoint("noop")  # type: ignore[untyped-decorator] # not installed where this is checked
        async def noop(job: Job) -> None:
            handled.one(int(job.payload or b"-1"))

        await manager.run(batch_size=BATCH)

    async def submit(self, number: int) -> None:
        """One job."""
        await self._queries.enqueue("noop", b"%d" % number)

    async def submit_many(self, count: int) -> None:
        """One statement."""
        await self._queries.enqueue(["noop"] * count, [b"-1"] * count, [0] * count)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Peer]:
    connection = await asyncpg.connect(url)
    yield PgQueuer(AsyncpgDriver(connection))
    await connection.close()


if __name__ == "__main__":
    command, url, count = asked()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(obey(_connected(url), command, count))
