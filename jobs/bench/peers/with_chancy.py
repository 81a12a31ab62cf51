"""Chancy, as a program of its own Python: see program.py."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chancy import Chancy, Job, Queue, Worker

from jobs.bench.peers import with_chancy
from jobs.bench.peers.handled import Handled
from jobs.bench.peers.program import Peer, asked, obey

#: Of its settings these were the fastest: as a job ends the next are fetched, so many at once.
CONCURRENCY = 1_000
#: Of the module as the worker imports it: a job names its function by its path.
handled = Handled()


async def noop(*, number: int) -> None:
    """Do nothing."""
    handled.one(number)


class ChancyPeer(Peer):
    """An app with one queue."""

    def __init__(self, app: Chancy) -> None:
        self._app = app

    async def install(self) -> None:
        """Make its tables, and the queue."""
        await self._app.migrate()
        await self._app.declare(
            Queue(
                "default",
                concurrency=CONCURRENCY,
                executor=Chancy.Executor.Async,
                polling_interval=1,
                eager_polling=True,
            )
        )

    async def work(self, handled: Handled) -> None:
        """One worker on one event loop, its fastest way for handlers that do not compute."""
        with_chancy.handled = handled
        async with Worker(self._app, register_signal_handlers=False) as worker:
            await worker.wait_for_shutdown()

    async def submit(self, number: int) -> None:
        """One job."""
        await self._app.push(_job(number))

    async def submit_many(self, count: int) -> None:
        """One transaction."""
        async for _ in self._app.push_many([_job(-1)] * count, batch_size=count):
            pass


def _job(number: int) -> Job:
    return Job(func="jobs.bench.peers.with_chancy.noop", kwargs={"number": number})


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Peer]:
    async with Chancy(url, log=logging.getLogger("chancy")) as app:  # its own writes a line for each job
        yield ChancyPeer(app)


if __name__ == "__main__":
    command, url, count = asked()
    asyncio.run(obey(_connected(url), command, count))
