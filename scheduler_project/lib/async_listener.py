"""Listens to one channel from an event loop, on one connection, and comes back after an outage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
from psycopg import sql

from scheduler_project.lib import logs, pg

log = logs.get(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0


class AsyncListener:
    """Awaits ``on_note(payload)`` for each message in turn; calls ``on_gap()`` each time it begins to listen again.

    Args:
        channel: an identifier, as it stands in LISTEN.
        name: shown in pg_stat_activity.
    """

    def __init__(
        self, channel: str, name: str, on_note: Callable[[str], Awaitable[None]], on_gap: Callable[[], None]
    ) -> None:
        self._channel, self._name, self._on_note, self._on_gap = channel, name, on_note, on_gap
        self._task: asyncio.Task[None] | None = None
        self.is_listening = asyncio.Event()

    def start(self) -> None:
        """Begin to listen; nothing happens if it does."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """Listen no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async with await pg.connect_direct_async(self._name) as connection:
                    await connection.execute(sql.SQL("listen {}").format(sql.Identifier(self._channel)))
                    pause_s = FIRST_PAUSE_S
                    self.is_listening.set()
                    self._on_gap()  # whatever was sent before is lost
                    async for note in connection.notifies():
                        await self._on_note(note.payload)
            except (psycopg.Error, OSError) as error:
                log.warning("listener_lost", error=str(error).strip(), retry_in_s=pause_s)
            except Exception:  # boundary: one message must not end the listening
                log.exception("listener_failed")
            self.is_listening.clear()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
