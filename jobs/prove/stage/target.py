"""A server on this machine that the handlers of a proof call; it counts who reaches it, and how many at once."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Target(ThreadingHTTPServer):
    """Answers 200, or 503 while it is down; ``/elsewhere`` leads to the address in ``elsewhere``.

    Attributes:
        reached: the own address that each call came to.
        most: the most calls at one moment.
    """

    daemon_threads = True
    request_queue_size = 100
    address_family = socket.AF_INET6

    def __init__(self) -> None:
        self.is_up, self.slow_s, self.elsewhere = True, 0.0, ""
        self.reached: list[str] = []
        self.now = self.most = 0
        self.lock = threading.Lock()
        super().__init__(("::", 0), _Answer)

    def server_bind(self) -> None:
        """On every address of this machine, of both kinds."""
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])


class _Answer(BaseHTTPRequestHandler):
    server: Target

    def do_GET(self) -> None:
        """Count and answer."""
        target = self.server
        with target.lock:
            target.reached.append(str(self.connection.getsockname()[0]).removeprefix("::ffff:"))
            target.now += 1
            target.most = max(target.most, target.now)
        time.sleep(target.slow_s)
        with target.lock:
            target.now -= 1
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("location", target.elsewhere)
        else:
            self.send_response(200 if target.is_up else 503)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def target() -> Iterator[Target]:
    """A target that serves until the end."""
    server = Target()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
