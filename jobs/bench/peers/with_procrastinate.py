"""Procrastinate, as a program of its own Python: see program.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import procrastinate

from jobs.bench.peers.handled import Handled
from jobs.bench.peers.program import Peer, asked, obey

CONCURRENCY = 100


class Procrastinate(Peer):
    """An app with one task."""

    def __init__(self, app: procrastinate.App) -> None:
        self._app = app
        self._handled = Handled()

        @app.task(name="noop")  # type: ignore[untyped-decorator] # not installed where this is checked
        async def noop(number: int) -> None:
            self._handled.one(number)

        self._noop = noop

    async def install(self) -> None:
        """Make its tables."""
        await self._app.schema_manager.apply_schema_async()

    async def work(self, handled: Handled) -> None:
        """One worker; ended jobs stay, as they do by default."""
        self._handled = handled
        await self._app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)

    async def submit(self, number: int) -> None:
        """One job."""
        await self._noop.defer_async(number=number)

    async def submit_many(self, count: int) -> None:
        """One statement."""
        await self._noop.batch_defer_async(*[{"number": -1}] * count)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Peer]:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
    async with app.open_async():
        yield Procrastinate(app)


if __name__ == "__main__":
    command, url, count = asked()
    asyncio.run(obey(_connected(url), command, count))
