"""WSGI under ASGI: pages and REST run in a few threads, which see a request only when its body is complete.

A client that sends slowly costs memory up to the largest body, and no thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from a2wsgi import WSGIMiddleware

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_FRAMING = (b"content-length", b"transfer-encoding")


class Pages:
    """An ASGI application for requests only.

    Args:
        threads: so many requests are worked on at once; each may hold a database connection.
        max_body_bytes: the rest of a longer body is not kept; the application refuses it by its length.
    """

    def __init__(self, application: Any, threads: int, max_body_bytes: int) -> None:
        self._threads = WSGIMiddleware(application, workers=threads)
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Gather the body, then answer."""
        chunks: list[bytes] = []
        length, has_more = 0, True
        while has_more and length <= self._max_body_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            chunk, has_more = message.get("body", b""), message.get("more_body", False)
            length += len(chunk)
            chunks.append(chunk)
        body = b"".join(chunks)

        async def gathered() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _FRAMING]
        if length or any(name.lower() in _FRAMING for name, _ in scope["headers"]):
            headers.append((b"content-length", str(length).encode()))
        await self._threads({**scope, "headers": headers}, gathered, send)  # type: ignore[arg-type]
