"""How a worker and its children talk: JSON messages over a stream, each behind its length."""

from __future__ import annotations

import dataclasses
import json
import socket
import threading
from typing import Any

from jobs import decisions
from jobs.decisions import Verdict

_LENGTH_BYTES = 4
#: A result is at most a mebibyte; anything longer is no message of ours.
MAX_BYTES = 64 * 2**20

Message = dict[str, Any]


class Wire:
    """One end of a stream. Sends from any thread, receives in one."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._lock = sock, threading.Lock()

    def send(self, **message: object) -> None:
        """Send a message.

        Raises:
            OSError: the other end is gone.
        """
        data = json.dumps(message).encode()
        with self._lock:
            self._sock.sendall(len(data).to_bytes(_LENGTH_BYTES, "big") + data)

    def receive(self) -> Message | None:
        """Wait for a message; None once the other end is gone."""
        head = self._take(_LENGTH_BYTES)
        size = int.from_bytes(head, "big")
        data = self._take(size) if len(head) == _LENGTH_BYTES and size <= MAX_BYTES else b""
        if not data or len(data) < size:
            return None
        message: Message = json.loads(data)
        return message

    def close(self) -> None:
        """Let go of it; the other end sees that."""
        self._sock.close()

    def _take(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                chunk = self._sock.recv(min(size - len(data), 1 << 20))
            except OSError:
                break
            if not chunk:
                break
            data += chunk
        return bytes(data)


def packed(verdict: Verdict) -> Message:
    """A verdict as a message."""
    return {"kind": type(verdict).__name__, **dataclasses.asdict(verdict)}


def unpacked(message: Message) -> Verdict:
    """The verdict of a message."""
    fields = dict(message)
    verdict: Verdict = getattr(decisions, fields.pop("kind"))(**fields)
    return verdict
