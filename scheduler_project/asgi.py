"""What gunicorn serves: sockets and streams on the event loop, everything else by Django in threads."""

from __future__ import annotations

from django.conf import settings

from scheduler_project.lib.pages import Pages, Receive, Send
from scheduler_project.wsgi import application as django_pages  # sets Django up, so it comes before what uses it

from jobs.live import door  # isort: skip

_pages = Pages(django_pages, settings.WEB_THREADS, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


async def application(scope: dict[str, object], receive: Receive, send: Send) -> None:
    """ASGI's entry."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
    elif not await door.serve(scope, receive, send):
        await _pages(scope, receive, send)


async def _live(receive: Receive, send: Send) -> None:
    """Start and end of the process."""
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await door.the_hub().stop()
    await send({"type": "lifespan.shutdown.complete"})
