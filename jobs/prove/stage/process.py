"""The real processes of a proof, with signals and what they wrote."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

#: Small times, so that a proof takes seconds; its figures are in proportion.
SMALL_TIMES = {
    "APP_WORKER_POLL_INTERVAL_MS": "200",
    "APP_WORKER_HEARTBEAT_INTERVAL_SECS": "1",
    "APP_SCHEDULER_POLL_INTERVAL_MS": "500",
    "APP_SCHEDULER_LEASE_REAPER_INTERVAL_SECS": "1",
    # Under a storm of kills a job may lose its worker often without being to blame.
    "APP_POISON_AFTER": "1000",
    "APP_LOG_LEVEL": "info",
    "APP_LOG_FORMAT": "json",
    "APP_HANDLER_MODULES": "jobs.prove.stage.work",
}
_END_S = 10.0
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["jobs.prove.stage.nursery"])


def leave(*_: object) -> None:
    """End this process at once, as a program does that can not cope."""
    os._exit(1)


class Place(NamedTuple):
    """Where a process lives: its database, and the network of another host (``Host.path``) or ours."""

    url: str
    network: str = ""


class Process:
    """One process of the product in the scratch database."""

    def __init__(self, proof: str, guard: str, command: Sequence[str], place: Place) -> None:
        from jobs.prove.stage.nursery import live

        self.log = tempfile.NamedTemporaryFile("w+")  # noqa: SIM115 - closed at the end of the process
        self._process = _forks.Process(target=live, args=(proof, guard, list(command), self.log.name, place))
        self._process.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid or 0

    @property
    def is_running(self) -> bool:
        """Has it not ended?"""
        return self._process.is_alive()

    def freeze(self) -> None:
        """SIGSTOP: it does nothing until it is resumed."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._send(signal.SIGCONT)

    def tell_to_stop(self) -> None:
        """SIGTERM."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone; also of one that is frozen or gone."""
        self._send(signal.SIGKILL)
        self._process.join(_END_S)
        self.log.close()

    def wait(self, limit_s: float) -> int | None:
        """Wait for its end; its exit code, None if it goes on."""
        self._process.join(limit_s)
        return self._process.exitcode

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of its log that tell of one event."""
        found = []
        for line in os.pread(self.log.fileno(), 1 << 24, 0).decode(errors="replace").splitlines():
            if f'"{name}"' in line:
                with contextlib.suppress(ValueError):  # the last line may be half written
                    found.append(json.loads(line))
        return [event for event in found if event.get("event") == name]

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.is_running:
                os.kill(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
