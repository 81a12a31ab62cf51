"""How tests listen to live events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import ClientConnection, connect


class Socket:
    """A WebSocket that remembers what it was told."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.seen: list[dict[str, Any]] = []

    def until(self, condition: Callable[[dict[str, Any]], bool], timeout_s: float = 20) -> dict[str, Any]:
        """The first event from now on that fulfils the condition."""
        deadline = time.monotonic() + timeout_s
        while True:
            for event in self._next(deadline):
                if condition(event):
                    return event

    def _next(self, deadline: float) -> list[dict[str, Any]]:
        left_s = deadline - time.monotonic()
        try:
            message = json.loads(self.connection.recv(timeout=max(0.0, left_s)))
        except TimeoutError:
            raise AssertionError(f"not told in time; seen {self.seen[-20:]}") from None
        events = message["events"] if message["type"] == "batch" else [message]
        self.seen += events
        return list(events)

    def settled(self) -> Socket:
        """Wait until whatever happens from now on is told."""
        self.until(lambda event: event["type"] == "resync")
        return self

    def statuses_until(self, job_id: object, last: str) -> list[str]:
        """The statuses of a job up to its last one."""
        self.until(lambda event: event.get("job") == str(job_id) and event["status"] == last)
        return [event["status"] for event in self.seen if event.get("job") == str(job_id)]

    def say(self, message: object) -> dict[str, Any]:
        """Say something; the answer."""
        self.connection.send(json.dumps(message))
        return self.until(lambda event: event["type"] in ("subscribed", "error"))

    def closed_with(self, timeout_s: float = 20) -> int:
        """Read until the server closes; its code."""
        deadline = time.monotonic() + timeout_s
        while self.connection.protocol.close_code is None or self.connection.state.name != "CLOSED":
            if time.monotonic() > deadline:
                raise AssertionError("not closed in time")
            try:
                self.connection.recv(timeout=0.2)
            except TimeoutError:
                continue
            except Exception:  # noqa: BLE001 - closed
                break
        return int(self.connection.protocol.close_code or 0)


@contextmanager
def listening(url: str, query: str = "", *, origin: str | None = None, **headers: str) -> Iterator[Socket]:
    """A socket; header names with underscores."""
    address = f"{url.replace('http', 'ws', 1)}/ws/events{query}"
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    with connect(
        address,
        additional_headers=more,
        origin=origin,  # type: ignore[arg-type]
        compression=None,
        proxy=None,
        max_size=None,
        close_timeout=1,
    ) as one:
        yield Socket(one)
