"""WSGI under ASGI: pages and REST run in a few threads, which see a request only when its body is complete.

A client that sends slowly costs memory up to the largest body, and no thread. An answer that is made as a whole goes
back to the event loop in one step; only streamed ones cross over chunk by chunk.
"""

from __future__ import annotations

import asyncio
import contextvars
import io
import sys
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes

from a2wsgi.wsgi import build_environ

Message = dict[str, Any]
Receive = Callable[[], Coroutine[Any, Any, Message]]
Send = Callable[[Message], Coroutine[Any, Any, None]]
Tell = Callable[[Message], None]
_FRAMING = (b"content-length", b"transfer-encoding")
#: What a query string may hold as it is; other bytes are written as percent signs and digits.
_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F))


class _Head(NamedTuple):
    """Status and headers of an answer."""

    status: int
    headers: list[tuple[bytes, bytes]]

    def message(self) -> Message:
        """For ASGI."""
        return {"type": "http.response.start", "status": self.status, "headers": self.headers}


class Pages:
    """An ASGI application for requests only.

    Args:
        threads: so many requests are worked on at once; each may hold a database connection.
        max_body_bytes: the rest of a longer body is not kept; the application refuses it by its length.
    """

    def __init__(self, application: Any, threads: int, max_body_bytes: int) -> None:
        self._application = application
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="pages")
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Gather the body, then answer."""
        body = await self._gather(receive)
        if body is None:
            return  # the client is gone
        loop = asyncio.get_running_loop()

        def tell(message: Message) -> None:
            asyncio.run_coroutine_threadsafe(send(message), loop).result()

        # A context of its own, so that what one request binds for its log lines is not seen by the next.
        run = contextvars.copy_context().run
        rest = await loop.run_in_executor(self._threads, run, self._answer, _environ(scope, body), tell)
        for message in rest:
            await send(message)

    async def _gather(self, receive: Receive) -> bytes | None:
        chunks: list[bytes] = []
        length, has_more = 0, True
        while has_more and length <= self._max_body_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunks.append(message.get("body", b""))
            length, has_more = length + len(chunks[-1]), message.get("more_body", False)
        return b"".join(chunks)

    def _answer(self, environ: dict[str, Any], tell: Tell) -> list[Message]:
        """In a thread: run the application; what is still to be sent."""
        heads: list[_Head] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
            pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
            heads.append(_Head(int(status.split(" ", 1)[0]), pairs))

        answer = self._application(environ, start_response)
        try:
            if not getattr(answer, "streaming", False):
                return [heads[-1].message(), {"type": "http.response.body", "body": b"".join(answer)}]
            tell(heads[-1].message())
            for chunk in answer:
                tell({"type": "http.response.body", "body": chunk, "more_body": True})
            return [{"type": "http.response.body", "body": b""}]
        finally:
            answer.close()


def _environ(scope: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    has_body = bool(body) or any(name.lower() in _FRAMING for name, _ in scope["headers"])
    headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _FRAMING]
    if has_body:
        headers.append((b"content-length", str(len(body)).encode()))
    query = quote_from_bytes(scope["query_string"], safe=_PLAIN).encode()
    told: Any = {**scope, "headers": headers, "query_string": query}
    environ: dict[str, Any] = dict(build_environ(told, None))  # type: ignore[arg-type] # the body is put in below
    return {**environ, "wsgi.input": io.BytesIO(body), "wsgi.errors": sys.stderr}
