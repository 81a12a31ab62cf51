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
#: The shortest lease seen sets the pace for this long.
REMEMBER_S = 60.0


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
        self._planned_s = interval_s
        self._shortest_s, self._shortest_at = interval_s * BEATS_PER_LEASE, 0.0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the pulse and the two threads that write to it and read from it."""
        self._spawn()
        threading.Thread(target=self._write, name="heartbeat", daemon=True).start()

    def beat_now(self) -> None:
        """Do not wait for the next beat: something may have happened to a job that is held."""
        self._beat_now.set()

    def hurry(self, lease_s: float) -> None:
        """A lease was claimed: beat at once if the next beat would come too late for it."""
        self._shortest_s, self._shortest_at = min(self._shortest(), lease_s), time.monotonic()
        if lease_s / BEATS_PER_LEASE < self._planned_s:
            self._beat_now.set()

    def stop(self) -> None:
        """End the pulse, whatever it is waiting for: nothing is held any more."""
        self._is_stopping = True
        self._beat_now.set()
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def _shortest(self) -> float:
        """The shortest lease of late: short jobs with short leases come and go between two beats."""
        is_recent = time.monotonic() - self._shortest_at < REMEMBER_S
        return self._shortest_s if is_recent else self._interval_s * BEATS_PER_LEASE

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
            try:
                state = self._state()
                shortest_s = min([lease.lease_s for lease in state.held], default=self._shortest())
                self._planned_s = min(self._interval_s, min(shortest_s, self._shortest()) / BEATS_PER_LEASE)
                self._send(
                    {"held": state.held, "status": state.status, "active": state.active, "interval_s": self._planned_s}
                )
            except Exception:  # boundary: a worker without a heartbeat would lose its leases silently
                log.exception("heartbeat_failed")
            if self._beat_now.wait(self._planned_s):
                self._beat_now.clear()

    def _send(self, message: dict[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            if not self._is_stopping:
                log.warning("pulse_died", exit_code=process.poll())
                time.sleep(0.5)  # a pulse that can not live must not be started in a tight circle
                self._spawn()

    def _read(self, answers: IO[bytes]) -> None:
        for line in answers:
            try:
                answer = json.loads(line)
            except ValueError:  # the pulse was killed in the middle of a line
                continue
            if answer["error"]:
                log.warning("heartbeat_failed", error=answer["error"])
            if answer["lost"]:
                self._on_lost(answer["lost"])
            if answer["cancel"]:
                self._on_cancel(answer["cancel"])
