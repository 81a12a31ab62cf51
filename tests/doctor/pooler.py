"""A pooler as bad as they come: it swallows notifications, and may give each statement another session."""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

from django.db import connection

_ENDS_REQUEST = (b"Q", b"S")


class Pooler:
    """Speaks PostgreSQL's protocol, one request after the other, with ``sessions`` sessions in turn."""

    def __init__(self, sessions: int = 1) -> None:
        self._sessions = sessions
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """No more connections."""
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        backends = [_backend() for _ in range(self._sessions)]
        try:
            (length,) = struct.unpack("!I", _exactly(client, 4))
            hello = struct.pack("!I", length) + _exactly(client, length - 4)
            for number, backend in enumerate(backends):
                backend.sendall(hello)
                _relay(backend, client if number == 0 else None)
            turn = 0
            while True:
                kind, message = _message(client)
                backends[turn].sendall(message)
                if kind in _ENDS_REQUEST:
                    _relay(backends[turn], client)
                    turn = (turn + 1) % len(backends)
        except OSError:
            pass
        finally:
            for one in (client, *backends):
                one.close()


def _backend() -> socket.socket:
    found: dict[str, Any] = connection.settings_dict
    if str(found["HOST"]).startswith("/"):
        backend = socket.socket(socket.AF_UNIX)
        backend.connect(f"{found['HOST']}/.s.PGSQL.{found['PORT'] or 5432}")
        return backend
    return socket.create_connection((found["HOST"], int(found["PORT"] or 5432)))


def _relay(backend: socket.socket, client: socket.socket | None) -> None:
    """Pass on one answer, without the notifications."""
    while True:
        kind, message = _message(backend)
        if client is not None and kind != b"A":
            client.sendall(message)
        if kind == b"Z":
            return


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(source, 5)
    return head[:1], head + _exactly(source, struct.unpack("!I", head[1:])[0] - 4)


def _exactly(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (part := source.recv(count - len(data))):
            raise OSError("gone")
        data += part
    return data
