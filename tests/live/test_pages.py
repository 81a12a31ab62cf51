"""What reaches Django through the event loop: bodies in pieces, bodies that are too long, clients that hang."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
from django.conf import settings

from queues.models import Queue
from tests.factories import make_job
from tests.live.test_streams import status_of
from tests.personas import make_key
from tests.servers import web_server
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def exchanged(port: int, raw: bytes) -> bytes:
    """What the server answers to these bytes, to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(raw)
        answer = b""
        try:
            while chunk := connection.recv(65_536):
                answer += chunk
        except ConnectionResetError:
            pass
        return answer


def request(method: str, path: str, key: str, body: bytes = b"", *more: str) -> bytes:
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", f"X-API-Key: {key}",
            "Content-Type: application/json", *more]  # fmt: skip
    return "\r\n".join([*head, "", ""]).encode() + body


def test_bodies_heads_and_lines_are_treated_as_before(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project)
    job = json.dumps({"queue_id": str(committed_queue.pk), "job_type": "noop"}).encode()
    with web_server(unused_port):
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (job[:7], job[7:])) + b"0\r\n\r\n"
        chunked = exchanged(unused_port, request("POST", "/api/jobs", key, chunks, "Transfer-Encoding: chunked"))
        whole = exchanged(unused_port, request("POST", "/api/jobs", key, job, f"Content-Length: {len(job)}"))
        assert chunked.startswith(b"HTTP/1.1 201"), chunked
        assert whole.startswith(b"HTTP/1.1 201"), whole
        assert b"x-request-id" in whole.lower()

        head = exchanged(unused_port, request("HEAD", "/healthz", key))
        assert head.startswith(b"HTTP/1.1 200")
        assert head.endswith(b"\r\n\r\n")

        size = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1_000
        long = exchanged(unused_port, request("POST", "/api/jobs", key, b" " * size, f"Content-Length: {size}"))
        assert long.split(b" ")[1] in (b"400", b"413"), long[:300]
        assert b'"error"' in long

        for odd in (b"/api/jobs?job_type=\xff\xfe", b"/api/%ff/%00", b"/api/jobs?job_type=%ff", b"/api/\xff"):
            raw = request("GET", "/odd", key).replace(b"/odd", odd)
            assert exchanged(unused_port, raw).split(b" ")[1] in (b"200", b"400", b"404"), odd
        line = exchanged(unused_port, request("GET", "/api/jobs?x=" + "a" * 9_000, key))
        assert line.split(b" ")[1] in (b"400", b"414"), line[:300]
        unfit = exchanged(unused_port, request("GET", "/api/jobs?job_type=" + "%C3%A9" * 1_000, key))
        assert unfit.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400")), unfit[:300]
        assert unfit.rstrip().endswith(b"}")


def test_slow_clients_and_waiting_requests_leave_room_for_pages(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project)
    job = make_job(committed_queue)
    with web_server(unused_port) as url:
        stuck = [socket.create_connection(("127.0.0.1", unused_port)) for _ in range(20)]
        for one in stuck:
            one.sendall(request("POST", "/api/jobs", key, b"{", "Content-Length: 100"))
        waiting = [
            threading.Thread(
                target=status_of, args=(url, f"/api/jobs/{job.pk}?wait_ms=8000"), kwargs={"X_API_Key": key}
            )
            for _ in range(12)
        ]
        for thread in waiting:
            thread.start()
        began = time.monotonic()

        assert status_of(url, "/readyz") == 200
        assert status_of(url, f"/api/jobs/{job.pk}", X_API_Key=key) == 200
        assert time.monotonic() - began < 8  # before any of those that wait were answered
        for one in stuck:
            one.close()
        for thread in waiting:
            thread.join(20)
        wait_until(lambda: status_of(url, "/healthz") == 200)
