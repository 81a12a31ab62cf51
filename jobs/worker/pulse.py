"""The pulse: a small process beside a worker that extends its leases.

It shares neither interpreter nor connection with the work, so a handler that computes without pause, or holds the
interpreter for seconds, does not cost the worker its leases. It imports no Django and starts in a moment.

The worker sends one JSON line for each beat: the leases it holds and how it is. If it falls silent, the pulse looks
at the process itself: while it lives and consumes processor time it is computing, and its leases are extended by
worker id; if it is stopped, dead or asleep, nothing is extended and the leases lapse, as they should.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
import time
from typing import Any

import psutil
import psycopg

from jobs import sql
from scheduler_project.lib.statements import Statement, plain_array

#: A worker silent for so many intervals is looked at more closely.
SILENT_INTERVALS = 1.5
#: Processor time in one interval, as a share of it, above which a silent worker is computing and not asleep.
COMPUTING_SHARE = 0.05


class Pulse:
    """Beats for one worker until its pipe closes."""

    def __init__(self, parameters: dict[str, Any], worker_id: str, worker_pid: int) -> None:
        self._parameters, self._worker_id = parameters, worker_id
        self._process = psutil.Process(worker_pid)
        self._connection: psycopg.Connection[Any] | None = None
        self._interval_s = 1.0
        self._last: dict[str, Any] = {"status": "active", "active": 0}
        self._cpu_s = self._cpu_now()

    def run(self) -> None:
        """Serve the pipe."""
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin.buffer, selectors.EVENT_READ)
            pending = b""
            while True:
                if selector.select(self._interval_s * SILENT_INTERVALS):
                    chunk = os.read(sys.stdin.fileno(), 1 << 20)
                    if not chunk:
                        return  # the worker is gone
                    *lines, pending = (pending + chunk).split(b"\n")
                    if lines:
                        self._beat(json.loads(lines[-1]))
                elif self._is_computing():
                    self._beat_silently()

    def _beat(self, message: dict[str, Any]) -> None:
        self._interval_s, self._last, self._cpu_s = message["interval_s"], message, self._cpu_now()
        held = message["held"]
        mine = self._execute(
            sql.EXTEND_LEASES,
            {
                "ids": plain_array([lease[0] for lease in held]),
                "tokens": plain_array([lease[1] for lease in held]),
                "leases_s": plain_array([lease[2] for lease in held]),
            },
        )
        if mine is None:
            return
        kept = {token for token, _, _ in mine}
        self._answer(
            lost=[lease[1] for lease in held if lease[1] not in kept],
            cancel=[token for token, is_cancel_requested, _ in mine if is_cancel_requested],
        )
        self._say_alive(silent=False)

    def _beat_silently(self) -> None:
        mine = self._execute(sql.EXTEND_LEASES_OF_WORKER, {"worker_id": self._worker_id})
        if mine is not None:
            self._answer(lost=[], cancel=[token for token, is_cancel_requested in mine if is_cancel_requested])
            self._say_alive(silent=True)

    def _say_alive(self, *, silent: bool) -> None:
        with contextlib.suppress(psutil.Error):
            self._execute(
                sql.BEAT,
                {
                    "worker_id": self._worker_id,
                    "status": self._last["status"],
                    "active": self._last["active"],
                    "cpu": self._process.cpu_percent(),
                    "memory_mb": round(self._process.memory_info().rss / 2**20, 1),
                    "metadata": json.dumps({"silent": True} if silent else {}),
                },
            )

    # -- the worker's process ------------------------------------------------------------------------------------
    def _is_computing(self) -> bool:
        before, self._cpu_s = self._cpu_s, self._cpu_now()
        if self._cpu_s - before < self._interval_s * COMPUTING_SHARE:
            return False
        with contextlib.suppress(psutil.Error):
            gone = {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
            return self._process.status() not in gone
        return False

    def _cpu_now(self) -> float:
        with contextlib.suppress(psutil.Error):
            times = self._process.cpu_times()
            return float(times.user + times.system)
        return 0.0

    # -- database and pipe ---------------------------------------------------------------------------------------
    def _execute(self, statement: Statement, params: dict[str, Any]) -> list[tuple[Any, ...]] | None:
        """The rows, or None if the database did not answer; the next beat tries again."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(
                    **self._parameters, autocommit=True, cursor_factory=psycopg.ClientCursor
                )
            cursor = self._connection.execute(statement.text, params)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._answer(lost=[], cancel=[], error=f"{statement.name}: {str(error).strip()}")
            return None

    def _answer(self, *, lost: list[str], cancel: list[str], error: str = "") -> None:
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"lost": lost, "cancel": cancel, "error": error, "at": time.time()}), flush=True)  # noqa: T201


def main() -> None:
    """Read who and where from the first line, then beat."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the worker's drain needs its leases; the closed pipe is our signal
    hello = json.loads(_first_line())
    Pulse(hello["parameters"], hello["worker_id"], hello["worker_pid"]).run()


def _first_line() -> bytes:
    """Read one line without reading ahead."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(sys.stdin.fileno(), 1)
        if not byte:
            raise SystemExit(0)
        line += byte
    return line


if __name__ == "__main__":
    main()
