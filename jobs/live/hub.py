"""The hub of a web process: one connection that listens, any number of listeners that it feeds."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from jobs import events
from jobs.live.dbthread import in_thread
from jobs.live.messages import MAX_JOINED, RESYNC, News, Subset, news_of_jobs, news_of_other
from jobs.live.people import Listener, find_project_of_queue
from scheduler_project.lib import logs
from scheduler_project.lib.async_listener import AsyncListener
from scheduler_project.lib.ids import uuid7

log = logs.get(__name__)

#: Messages kept for a listener that reads slowly; beyond, they are dropped and he is told to look for himself.
BACKLOG = 4_096
WATCH_FOR_S, RENEW_EVERY_S = 20.0, 5.0
#: Publishers may believe for a moment that nobody looks: what happens meanwhile is made good by a resync.
SETTLE_S = 2 * events.KNOWN_S
#: Without LISTEN there is nothing to tell but: look again.
POLL_S = 5.0
MOST_KNOWN = 100_000


class TooMany(Exception):
    """No room for another listener; its text says which limit was met."""


class Subscriber:
    """One listener's backlog and what he asked for."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.subsets: list[Subset] = [Subset()]
        self.is_closing = False
        self.overflows = 0
        self._backlog: deque[str] = deque()
        self._has_some = asyncio.Event()

    def offer(self, news: News) -> None:
        """Keep what he may see and asked for."""
        is_his = news.project in self.listener.projects if news.project else self.listener.sees_shared_workers
        if is_his and (texts := news.for_subsets(self.subsets)):
            self.say(*texts)

    def say(self, *texts: str) -> None:
        """Keep these for him, or drop all and ask him to look for himself."""
        if len(self._backlog) + len(texts) > BACKLOG:
            self.overflows += 1
            self._backlog.clear()
            texts = (RESYNC,)
        self._backlog.extend(texts)
        self._has_some.set()

    def close(self) -> None:
        """The process ends; what he has not read is dropped."""
        self.is_closing = True
        self._backlog.clear()
        self._has_some.set()

    async def take(self, timeout_s: float) -> list[str]:
        """What is waiting, up to a frame's worth; nothing after ``timeout_s`` without news, or while closing."""
        if not self._backlog and not self.is_closing:
            self._has_some.clear()
            try:
                await asyncio.wait_for(self._has_some.wait(), timeout_s)
            except TimeoutError:
                return []
        return [self._backlog.popleft() for _ in range(min(len(self._backlog), MAX_JOINED))]


class Hub:
    """Everything here runs on the event loop."""

    def __init__(self) -> None:
        self._id = uuid7()
        self._subscribers: set[Subscriber] = set()
        self._by_name: Counter[str] = Counter()
        self._listener = AsyncListener(events.CHANNEL, "punctual events", self._hear, self._lose)
        self._projects: dict[str, str | None] = {}
        self._numbers: dict[str, int] = {}
        self._watched_at = float("-inf")
        self._is_settling = False
        self._keeper: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self.is_closing = False

    @asynccontextmanager
    async def listen(self, listener: Listener) -> AsyncIterator[Subscriber]:
        """Feed a listener as long as the block runs. Raises TooMany."""
        if len(self._subscribers) >= settings.EVENTS_MAX_CONNECTIONS:
            raise TooMany("This server has as many listeners as it takes.")
        if self._by_name[listener.name] >= settings.EVENTS_MAX_PER_USER:
            raise TooMany(f"There are {settings.EVENTS_MAX_PER_USER} connections of this account or key already.")
        subscriber = Subscriber(listener)
        self._subscribers.add(subscriber)
        self._by_name[listener.name] += 1
        try:
            await self._begin()
            if self.is_closing:  # since the caller looked
                subscriber.close()
            yield subscriber
        finally:
            self._subscribers.discard(subscriber)
            self._by_name[listener.name] -= 1
            self._by_name += Counter()  # drops the names at zero

    def close(self) -> None:
        """End all listeners: the process is about to end."""
        self.is_closing = True
        for subscriber in tuple(self._subscribers):
            subscriber.close()

    async def stop(self) -> None:
        """End the hub's own tasks."""
        self.close()
        await self._listener.stop()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._watching is not None:
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _begin(self) -> None:
        if settings.LISTEN:
            self._listener.start()
            if time.monotonic() > self._watched_at + RENEW_EVERY_S * 2:
                await self._watch_together()
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="events keeper")

    async def _keep(self) -> None:
        """Say again and again that somebody looks."""
        while True:
            if not settings.LISTEN:
                await asyncio.sleep(POLL_S)
                self._resync()
                continue
            await asyncio.sleep(RENEW_EVERY_S)
            if self._subscribers:
                await self._watch()

    async def _watch_together(self) -> None:
        """All who come at once, as after a deploy, wait for one statement; each of their own would tell all to look."""
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="events watch")
        await asyncio.shield(self._watching)  # one who leaves does not end it for the others

    async def _watch(self) -> None:
        is_new = time.monotonic() > self._watched_at + WATCH_FOR_S - SETTLE_S
        try:
            await in_thread(events.watch, self._id, WATCH_FOR_S)
        except (DatabaseError, InterfaceError) as error:
            log.warning("events_not_watched", error=str(error).strip())
            return
        self._watched_at = time.monotonic()
        if is_new:
            self._is_settling = True
            asyncio.get_running_loop().call_later(SETTLE_S, self._settle)

    def _settle(self) -> None:
        self._is_settling = False
        if self._listener.is_listening.is_set():  # else the resync comes when it listens
            self._resync()

    async def _hear(self, payload: str) -> None:
        at, _, text = payload.partition(" ")
        body = json.loads(text)
        sender, number = body["s"], body["n"]
        last = self._numbers.get(sender)
        if len(self._numbers) > MOST_KNOWN:
            self._numbers.clear()
        self._numbers[sender] = number
        if body.get("g") or (last is not None and number != last + 1):
            self._resync()
        if not self._subscribers:
            return
        if body["t"] != "job":
            self._spread(news_of_other(body, at))
            if body["e"] == "lost":  # what a killed worker did last was perhaps not told
                self._resync()
        elif project := await self._project_of(body["q"]):
            self._spread(news_of_jobs(body, project, at))

    def _spread(self, news: News) -> None:
        for subscriber in self._subscribers:
            subscriber.offer(news)

    def _resync(self) -> None:
        for subscriber in self._subscribers:
            subscriber.say(RESYNC)

    def _lose(self) -> None:
        self._numbers.clear()
        if not self._is_settling:
            self._resync()

    async def _project_of(self, queue_id: str) -> str | None:
        """A queue never changes its project, so it is asked for once."""
        if queue_id not in self._projects:
            if len(self._projects) > MOST_KNOWN:
                self._projects.clear()
            try:
                self._projects[queue_id] = await in_thread(find_project_of_queue, queue_id)
            except (DatabaseError, InterfaceError):
                self._resync()
                return None
        return self._projects[queue_id]
