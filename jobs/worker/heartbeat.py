"""The worker's side of the pulse: says which leases are held, hears which were lost or are to be cancelled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

from scheduler_project.lib import logs, pg

log = logs.get(__name__)

_ROOT = Path(__file__).resolve().parent.parent.parent
#: A lease is extended at least three times before it would lapse.
BEATS_PER_LEASE = 3


class Held(NamedTuple):
    """A lease to extend."""

    job_id: str
    token: str
    lease_s: int


class State(NamedTuple):
    """How the worker is."""

    held: list[Held]
    status: str
    active: int


class Heartbeat:
    """Runs the pulse process and talks to it.

    Args:
        state: asked at each beat, from the heartbeat's thread.
        on_lost: called with the tokens of lost leases.
        on_cancel: called with the tokens of jobs that somebody asked to stop.
    """

    def __init__(
        self,
        worker_id: str,
        interval_s: float,
        state: Callable[[], State],
        on_lost: Callable[[list[str]], None],
        on_cancel: Callable[[list[str]], None],
    ) -> None:
        self._worker_id, self._interval_s, self._state = worker_id, interval_s, state
        self._on_lost, self._on_cancel = on_lost, on_cancel
        self._beat_now = threading.Event()
        self._is_stopping = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the pulse and the two threads that write to it and read from it."""
        self._spawn()
        threading.Thread(target=self._write, name="heartbeat", daemon=True).start()

    def beat_now(self) -> None:
        """Do not wait for the next beat: something may have happened to a job that is held."""
        self._beat_now.set()

    def stop(self) -> None:
        """End the pulse."""
        self._is_stopping = True
        self._beat_now.set()
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait(timeout=5)

    def _spawn(self) -> None:
        # In its own session: a Ctrl-C in the terminal must not reach it before the worker has drained.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jobs.worker.pulse"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        name = f"punctual pulse {self._worker_id}"
        hello = {
            "parameters": {**pg.direct_parameters(), "application_name": name},
            "worker_id": self._worker_id,
            "worker_pid": os.getpid(),
        }
        self._send(hello)
        threading.Thread(target=self._read, args=(self._process.stdout,), name="heartbeat-answers", daemon=True).start()

    def _write(self) -> None:
        while not self._is_stopping:
            state = self._state()
            shortest_s = min((lease.lease_s for lease in state.held), default=self._interval_s * BEATS_PER_LEASE)
            interval_s = min(self._interval_s, shortest_s / BEATS_PER_LEASE)
            self._send(
                {"held": state.held, "status": state.status, "active": state.active, "interval_s": interval_s}
            )
            # A job with a short lease may be claimed meanwhile: look again at least once a second.
            self._wait(interval_s)

    def _wait(self, interval_s: float) -> None:
        deadline = time.monotonic() + interval_s
        while (left_s := deadline - time.monotonic()) > 0 and not self._is_stopping:
            if self._beat_now.wait(min(left_s, 1.0)):
                self._beat_now.clear()
                return
            shortest_s = min((lease.lease_s for lease in self._state().held), default=interval_s * BEATS_PER_LEASE)
            deadline = min(deadline, time.monotonic() + shortest_s / BEATS_PER_LEASE)

    def _send(self, message: dict[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except (BrokenPipeError, ValueError):
            if not self._is_stopping:
                log.warning("pulse_died", exit_code=process.poll())
                time.sleep(0.5)  # a pulse that can not live must not be started in a tight circle
                self._spawn()

    def _read(self, answers: IO[bytes]) -> None:
        for line in answers:
            answer = json.loads(line)
            if answer["error"]:
                log.warning("heartbeat_failed", error=answer["error"])
            if answer["lost"]:
                self._on_lost(answer["lost"])
            if answer["cancel"]:
                self._on_cancel(answer["cancel"])
