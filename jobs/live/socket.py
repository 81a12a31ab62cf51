"""WS /ws/events."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, InterfaceError

from jobs.live.connection import (
    BUSY,
    PING_EVERY_S,
    RESTART,
    TRY_LATER,
    Connection,
    Receive,
    Scope,
    Send,
    first_of,
    headers_of,
)
from jobs.live.dbthread import in_thread
from jobs.live.hub import Hub, Subscriber, TooMany
from jobs.live.messages import MAX_SUBSETS, PING, Subset, error, joined, subscribed
from jobs.live.people import FORBIDDEN, Refused, find_listener

PATH = "/ws/events"
Ending = tuple[int, str] | None


async def serve(hub: Hub, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse strangers before the handshake, then feed until somebody ends it."""
    await receive()  # websocket.connect
    try:
        if scope["path"] != PATH:
            raise Refused(FORBIDDEN, "There is no such socket.")
        look, listener = await in_thread(find_listener, headers_of(scope), scope["query_string"].decode("latin-1"))
    except Refused as refused:
        await send({"type": "websocket.close", "code": refused.code, "reason": refused.message})
        return
    except (DatabaseError, InterfaceError):
        await _end(send, (TRY_LATER, "the database can not be reached"), is_accepted=False)
        return
    if hub.is_closing:
        await _end(send, (RESTART, "restarting"), is_accepted=False)
        return
    try:
        async with hub.listen(listener) as subscriber:
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": '{"type":"hello"}'})
            connection = Connection(hub, subscriber, look)
            ending = await first_of(_pump(connection, send), _read(subscriber, receive), connection.guard())
        if ending is not None:
            await _end(send, ending)
    except TooMany as full:
        await _end(send, (BUSY, str(full)), is_accepted=False)
    except OSError:
        return  # the client is gone


async def _end(send: Send, ending: tuple[int, str], *, is_accepted: bool = True) -> None:
    """A refused handshake would tell a browser nothing, so a known caller hears the reason from a close frame."""
    code, reason = ending
    with suppress(OSError, RuntimeError):
        if not is_accepted:
            await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": code, "reason": reason[:120]})


async def _pump(connection: Connection, send: Send) -> Ending:
    subscriber = connection.subscriber
    while True:
        texts = await subscriber.take(PING_EVERY_S)
        if subscriber.is_closing:
            return RESTART, "restarting"
        await connection.send(send, {"type": "websocket.send", "text": joined(texts) if texts else PING})


async def _read(subscriber: Subscriber, receive: Receive) -> Ending:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return None
        if message["type"] == "websocket.receive":
            subscriber.say(_answer(subscriber, message.get("text")))


def _answer(subscriber: Subscriber, text: str | None) -> str:
    try:
        wish = json.loads(text or "")
        return _obey(subscriber, wish)
    except RecursionError:
        return error("the message is nested too deeply")
    except ValueError as problem:
        is_syntax = isinstance(problem, json.JSONDecodeError)
        return error("the message is not JSON" if is_syntax else str(problem))


def _obey(subscriber: Subscriber, wish: Any) -> str:
    """Change what the listener hears; the first subset he names takes the place of everything."""
    if not isinstance(wish, dict) or len(wish) != 1 or not wish.keys() <= {"subscribe", "unsubscribe"}:
        raise ValueError('say {"subscribe": {…}} or {"unsubscribe": {…}}')
    [(verb, fields)] = wish.items()
    subset, subsets = Subset.of(fields), subscriber.subsets
    if verb == "unsubscribe":
        subscriber.subsets = [old for old in subsets if old != subset]
    else:
        if subset.project and subset.project not in subscriber.listener.projects:
            raise ValueError("there is no such project")
        kept = [old for old in subsets if old not in (Subset(), subset)] if subset != Subset() else []
        if len(kept) >= MAX_SUBSETS:
            raise ValueError(f"there are {MAX_SUBSETS} subsets already")
        subscriber.subsets = [*kept, subset]
    return subscribed(subscriber.subsets)
