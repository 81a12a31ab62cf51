"""The door for whatever stays open: sockets and streams on the event loop; all else goes to the pages."""

from __future__ import annotations

from jobs.live import socket, stream
from jobs.live.connection import Receive, Scope, Send
from jobs.live.hub import Hub

hub: Hub | None = None


def the_hub() -> Hub:
    """This process's hub, made on its event loop when it is first needed."""
    global hub
    if hub is None:
        hub = Hub()
    return hub


async def serve(scope: Scope, receive: Receive, send: Send) -> bool:
    """Serve a socket or a stream to its end; False if it is neither."""
    if scope["type"] == "websocket":
        await socket.serve(the_hub(), scope, receive, send)
        return True
    if stream.is_stream(scope):
        await stream.serve(the_hub(), scope, receive, send)
        return True
    return False
