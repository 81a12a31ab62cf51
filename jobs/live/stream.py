"""GET /api/events and GET /api/jobs/{id}/events: the same as server-sent events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from urllib.parse import parse_qsl

import orjson
from django.db import DatabaseError, InterfaceError

from jobs.live.connection import PING_EVERY_S, Connection, Receive, Scope, Send, first_of, headers_of
from jobs.live.dbthread import in_thread
from jobs.live.hub import Hub, TooMany
from jobs.live.messages import RESYNC, Subset
from jobs.live.people import Listener, Refused, find_job, find_listener
from jobs.states import TERMINAL
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.rest.errors import DOWN, code_of, envelope

PATH = re.compile(r"/api/(?:jobs/(?P<job>[0-9a-fA-F-]{36})/)?events")
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # a proxy that gathers would keep the events
]
_SAFE = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


class _Wrong(Exception):
    """A request that is answered in the envelope."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def is_stream(scope: Scope) -> bool:
    """Is this request for a stream?"""
    return scope["type"] == "http" and PATH.fullmatch(scope["path"]) is not None


async def serve(hub: Hub, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer strangers in the envelope, then feed until somebody ends it."""
    headers = headers_of(scope)
    given = headers.get("x-request-id", "")
    request_id = given if _SAFE.fullmatch(given) else str(uuid7())
    with suppress(OSError):
        try:
            await _serve(hub, scope, receive, _with_id(send, request_id))
        except Refused as refused:
            await _refuse(send, refused.code - 4000, refused.message, request_id)
        except _Wrong as wrong:
            await _refuse(send, wrong.status, wrong.message, request_id)
        except TooMany as full:
            await _refuse(send, 429, str(full), request_id)
        except (DatabaseError, InterfaceError):
            await _refuse(send, 503, DOWN, request_id)


async def _serve(hub: Hub, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["method"] != "GET":
        raise _Wrong(405, f"Method {scope['method']} is not allowed.")
    headers, query = headers_of(scope), scope["query_string"].decode("latin-1")
    look, listener = await in_thread(find_listener, headers, query)
    subset = _subset(scope["path"], query, listener)
    if hub.is_closing:
        raise _Wrong(503, "The server restarts.")
    async with hub.listen(listener) as subscriber:
        subscriber.subsets = [subset]
        first = await _first(scope["path"], subset, listener)
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        if "last-event-id" in headers:
            first.append(RESYNC)  # what came since is not kept
        connection = Connection(hub, subscriber, look)
        is_of_one_job = "/jobs/" in scope["path"]
        pump = _pump(connection, send, first, is_of_one_job=is_of_one_job)
        await first_of(pump, _wait_for_end(receive), connection.guard())
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _subset(path: str, query: str, listener: Listener) -> Subset:
    match = PATH.fullmatch(path)
    fields = {name: value for name, value in parse_qsl(query, keep_blank_values=True) if name != "ticket"}
    if match and match["job"]:
        fields = {"job": match["job"].lower(), **fields}
    try:
        subset = Subset.of(fields)
    except ValueError as error:
        raise _Wrong(404 if match and match["job"] else 400, str(error)) from None
    if subset.project and subset.project not in listener.projects:
        raise _Wrong(404, "There is no such project.")
    return subset


async def _first(path: str, subset: Subset, listener: Listener) -> list[str]:
    """For one job: how it is now. Asked for after the listening began, so that nothing falls between."""
    if "/jobs/" not in path:
        return []
    found = await in_thread(find_job, subset.job, listener)
    if found is None:
        raise _Wrong(404, "There is no such job.")
    project, queue, status = found
    said = {"type": "job", "project": project, "queue": queue, "job": subset.job, "status": status, "at": None}
    return [orjson.dumps(said).decode()]


async def _pump(connection: Connection, send: Send, first: list[str], *, is_of_one_job: bool) -> None:
    numbers = count(1)
    texts = first
    await connection.send(send, _body(b": hello\n\n"))
    while True:
        if texts:
            await connection.send(send, _body("".join(_events(texts, numbers)).encode()))
        if is_of_one_job and any(_is_end(text) for text in texts):
            return
        texts = await connection.subscriber.take(PING_EVERY_S)
        if connection.subscriber.is_closing:
            return
        if not texts:
            await connection.send(send, _body(b": ping\n\n"))


def _events(texts: list[str], numbers: Iterator[int]) -> Iterator[str]:
    for text in texts:
        yield f"id: {next(numbers)}\ndata: {text}\n\n"


def _is_end(text: str) -> bool:
    return any(f'"status":"{status.value}"' in text for status in TERMINAL)


async def _wait_for_end(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _body(chunk: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": chunk, "more_body": True}


def _with_id(send: Send, request_id: str) -> Send:
    async def sending(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*_HEADERS, (b"x-request-id", request_id.encode())]}
        await send(message)

    return sending


async def _refuse(send: Send, status: int, message: str, request_id: str) -> None:
    body = orjson.dumps(envelope(code_of(status), message))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request_id.encode()),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="api"'))
    if status in (429, 503):
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
