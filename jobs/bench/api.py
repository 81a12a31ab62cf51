"""The REST API over loopback: what a submission and a list cost with a large table behind them.

Over loopback client, web process and PostgreSQL share the machine's cores; what the web process itself needs for what
autoscalers ask is measured in it, too.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from jobs.bench.stage import Say, fill, make_queue
from orgs.keys import PREFIX_CHARS, hash_key, make_key
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

ROUNDS, WARM_UP, TURN = 300, 20, 20
BARE = {"DJANGO_SETTINGS_MODULE": "jobs.bench.bare_settings"}
STATS = "/api/stats/queues"
UNLIMITED = {f"APP_RATE_{kind}_PER_MIN": "0" for kind in ("READ", "SUBMIT", "LOGIN")}
KEY = """
insert into api_keys (id, project_id, name, prefix, key_hash, scope, last_used_at)
select gen_random_uuid(), id, 'bench', %s, %s, 'manage', now() from projects
"""
#: As the leader counts them.
COUNTED = """
insert into queue_stats (project_id, queue_id, ready, scheduled, blocked, claimed, running, dead_letters, is_capped,
                         oldest_run_at, as_of)
select project_id, id, 5, 1, 0, 2, 3, 1, false, now(), now() from queues
"""
MANY_QUEUES = 100


def api(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """Submit and list with one web process and keep-alive, ``jobs`` ended jobs behind them."""
    with scratch.connect() as session:
        queue_id = make_queue(session, "api")
        key = make_manage_key(session)
        say(f"filling {jobs:,} ended jobs")
        fill(scratch, queue_id, jobs, status="completed")
    body = json.dumps({"queue_id": str(queue_id), "job_type": "from.the.bench", "payload": {"x": 1}})
    with _web_client(scratch, key) as client, _web_client(scratch, key, **BARE) as bare:
        say(f"{ROUNDS} single submissions, in turns with a view that does one INSERT")
        submits, inserts = [], []
        client.times("POST", "/api/jobs", body, WARM_UP)
        bare.times("POST", "/bare", body, WARM_UP)
        for _ in range(ROUNDS // TURN):
            submits += client.times("POST", "/api/jobs", body, TURN)
            inserts += bare.times("POST", "/bare", body, TURN)
        say(f"{ROUNDS} lists of 50")
        lists = client.times("GET", f"/api/jobs?queue_id={queue_id}&limit=50", None, ROUNDS)
        say(f"{ROUNDS} times what an autoscaler asks, of one queue and of {MANY_QUEUES}")
        stats = client.times("GET", STATS, None, ROUNDS)
        with scratch.connect() as session:
            for number in range(1, MANY_QUEUES):
                make_queue(session, f"api-{number}")
            session.execute(COUNTED)
        many = client.times("GET", STATS, None, ROUNDS)
    own = json.loads(_in_process(scratch, "jobs.bench.stats_here", f"{key}\n{STATS}"))
    say("counting the statements of a submission")
    statements, hints = map(float, _in_process(scratch, "jobs.bench.count_statements", f"{key}\n{body}").split())
    return [
        Figure("submit_p50", statistics.median(submits), "ms"),
        Figure("bare_view_p50", statistics.median(inserts), "ms"),
        Figure("submit_of_bare_view", sum(inserts) / sum(submits), "", 0.7),
        Figure("submit_statements", statements, "", 2.1, is_most=True),
        Figure("submit_hints", hints, ""),
        Figure("list_50_p50", statistics.median(lists), "ms", 30.0, is_most=True),
        Figure("list_50_p95", statistics.quantiles(lists, n=20)[-1], "ms"),
        Figure("stats_queues_p50", statistics.median(stats), "ms", 5.0, is_most=True),
        Figure("stats_100_queues_p50", statistics.median(many), "ms", 5.0, is_most=True),
        Figure("stats_100_queues_own_p50", own["p50"], "ms"),
        Figure("stats_100_queues_cpu", own["cpu"], "ms"),
        Figure("stats_queues_statements", own["statements"], "", 2.0, is_most=True),
    ]


@contextlib.contextmanager
def _web_client(scratch: Scratch, key: str, **more: str) -> Iterator[_Client]:
    """A connection to a web process that ends with it."""
    port = free_port()
    web = start_web(scratch, port, **more)
    try:
        client = _Client(port, key)
        client.wait_until_ready()
        yield client
        client.close()
    finally:
        web.terminate()
        web.wait(30)


def _in_process(scratch: Scratch, program: str, text: str) -> str:
    """What a program of the benchmark says that runs the web process's stack without its socket."""
    settings = "scheduler_project.settings"
    return scratch.run([sys.executable, "-m", program], text, DJANGO_SETTINGS_MODULE=settings, **UNLIMITED)


class _Client:
    """One keep-alive connection."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._headers = {"X-API-Key": key, "Content-Type": "application/json"}

    def wait_until_ready(self) -> None:
        """Wait for the web process."""
        deadline = time.monotonic() + 30
        while True:
            try:
                self._send("GET", "/readyz", None, 200)
                return
            except (OSError, http.client.HTTPException):
                self._connection.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def close(self) -> None:
        """Hang up: the web process would wait for us before it ends."""
        self._connection.close()

    def times(self, method: str, path: str, body: str | None, count: int) -> list[float]:
        """Milliseconds of each of ``count`` requests."""
        found = []
        for _ in range(count):
            began = time.perf_counter()
            self._send(method, path, body, 201 if method == "POST" else 200)
            found.append((time.perf_counter() - began) * 1000)
        return found

    def _send(self, method: str, path: str, body: str | None, expected: int) -> None:
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != expected:
            raise http.client.HTTPException(f"{method} {path}: {answer.status} {text[:200]!r}")


def make_manage_key(session: psycopg.Connection[Any]) -> str:
    """An API key of the benchmark's project."""
    key = make_key()
    session.execute(KEY, [key[:PREFIX_CHARS], hash_key(key)])
    return key


def wait_until_ready(port: int, key: str) -> None:
    """Wait for the web process."""
    _Client(port, key).wait_until_ready()


def start_web(scratch: Scratch, port: int, **more: str) -> subprocess.Popen[bytes]:
    """The web process of the product, without limits of rate."""
    program = [sys.executable, "-m", "gunicorn", "-c", "scheduler_project/gunicorn.py", "scheduler_project.asgi"]
    env = {"APP_API_HOST": "127.0.0.1", "APP_API_PORT": str(port)}
    return scratch.start(program=program, **env, **UNLIMITED, **more)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: Any = probe.getsockname()[1]
        return int(port)
