"""Asks a server whether it is ready, as libpq's PQping does: a socket that accepts may be replaying its log still."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

_PROTOCOL = 196608  # 3.0
_TERMINATE = b"X\0\0\0\4"
_CANNOT_CONNECT_NOW = b"C57P03\0"  # starting up, recovering or shutting down


def is_ready(socket_path: Path, user: str, timeout_s: float = 2.0) -> bool:
    """Does the server behind the socket take connections now? Too many clients is an answer too."""
    body = b"user\0" + user.encode() + b"\0database\0postgres\0\0"
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(socket_path))
            connection.sendall(struct.pack("!ii", len(body) + 8, _PROTOCOL) + body)
            answer = connection.recv(1024)
            if answer.startswith(b"R"):
                connection.sendall(_TERMINATE)
                return True
    except OSError:
        return False
    return answer.startswith(b"E") and _CANNOT_CONNECT_NOW not in answer
