"""What a socket and an event stream have in common: who it is, asked again and again, and when it must end."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from jobs.live.dbthread import in_thread
from jobs.live.hub import Hub, Subscriber
from jobs.live.people import FORBIDDEN, Look, Refused

Message = dict[str, Any]
Scope = Mapping[str, Any]
Receive = Callable[[], Coroutine[Any, Any, Message]]
Send = Callable[[Message], Coroutine[Any, Any, None]]

PING_EVERY_S = 20.0
#: Who reads nothing for so long is gone, whatever his connection says.
STUCK_S = 60.0
RESTART, BUSY, TRY_LATER = 1012, 4429, 1013


def headers_of(scope: Scope) -> dict[str, str]:
    """By their names in lower case; of repeated ones the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


class Connection:
    """One listener's connection.

    Attributes:
        sending_since: when a send began that has not ended, 0 if none is under way.
    """

    def __init__(self, hub: Hub, subscriber: Subscriber, look: Look) -> None:
        self._hub, self.subscriber, self._look = hub, subscriber, look
        self.sending_since = 0.0

    async def send(self, send: Send, message: Message) -> None:
        """Send, and note how long it takes."""
        self.sending_since = time.monotonic()
        await send(message)
        self.sending_since = 0.0

    async def guard(self) -> tuple[int, str]:
        """Return when the connection must end, with the code to close it by and the reason."""
        next_look = time.monotonic() + settings.EVENTS_RECHECK_SECS * random.uniform(0.8, 1.2)  # noqa: S311 - spreads the looks only
        while True:
            await asyncio.sleep(1.0)
            now = time.monotonic()
            if self.sending_since and now - self.sending_since > STUCK_S:
                return TRY_LATER, "nothing was read for a minute"
            if now < next_look:
                continue
            next_look = now + settings.EVENTS_RECHECK_SECS * random.uniform(0.8, 1.2)  # noqa: S311 - spreads the looks only
            try:
                self.subscriber.listener = await in_thread(self._look)
            except Refused as refused:
                return refused.code, refused.message
            except (DatabaseError, InterfaceError):
                continue  # an outage is no reason to end anything; nothing arrives during it either
            if self._has_lost_a_project():
                return FORBIDDEN, "You can not see this project any more."

    def _has_lost_a_project(self) -> bool:
        named = {subset.project for subset in self.subscriber.subsets if subset.project}
        return not named <= self.subscriber.listener.projects


async def first_of(*works: Awaitable[Any]) -> Any:
    """The answer of the work that ends first; the others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(iter(done)).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
