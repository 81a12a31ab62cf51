"""Real worker and scheduler processes against the test database, with signals and collected output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
from django.db import connection

ROOT = Path(__file__).resolve().parent.parent
#: Small times, so that a case takes seconds; numbers in the tests are in proportion.
QUICK = {
    "APP_WORKER_POLL_INTERVAL_MS": "200",
    "APP_WORKER_HEARTBEAT_INTERVAL_SECS": "1",
    "APP_SCHEDULER_POLL_INTERVAL_MS": "500",
    "APP_SCHEDULER_LEASE_REAPER_INTERVAL_SECS": "1",
    # Under a storm of kills a job may lose its worker often without being to blame.
    "APP_POISON_AFTER": "30",
    "APP_METRICS_PORT": "0",
    "APP_LOG_LEVEL": "info",
    "APP_LOG_FORMAT": "json",
    "APP_HANDLER_MODULES": "tests.work",
}


#: Set while APP_TEST_POOLER=1: where processes that are given no address of their own connect, and where directly.
POOLED: dict[str, str] = {}


def database_url() -> str:
    """The address of the database this test runs in."""
    found = connection.settings_dict
    password = f":{quote(found['PASSWORD'], safe='')}" if found["PASSWORD"] else ""
    query = f"host={quote(found['HOST'], safe='')}" + (f"&port={found['PORT']}" if found["PORT"] else "")
    return f"postgresql://{found['USER']}{password}@/{found['NAME']}?{query}"


def _addresses(url: str | None) -> dict[str, str]:
    return {"APP_DATABASE_URL": url} if url else {"APP_DATABASE_URL": database_url(), **POOLED}


class Process:
    """One manage.py process. Use as a context manager: it is killed at the end, whatever happened."""

    def __init__(
        self,
        *args: str,
        env: dict[str, str] | None = None,
        url: str | None = None,
        program: tuple[str, ...] = (str(ROOT / "manage.py"),),
    ) -> None:
        self.args = args
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end of the process
        # They start as users' do, with their modules compiled.
        unwanted = ("APP_", "PYTEST_", "PYTHONDONTWRITEBYTECODE")
        base = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
        self.popen = subprocess.Popen(
            [sys.executable, *program, *args],
            env={**base, **QUICK, **_addresses(url), **(env or {})},
            stdout=self.log,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
        )

    @classmethod
    def of_web(cls, env: dict[str, str], url: str | None = None) -> Process:
        """The web server."""
        config = str(ROOT / "scheduler_project" / "gunicorn.py")
        return cls("-c", config, "scheduler_project.asgi:application", env=env, url=url, program=("-m", "gunicorn"))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.popen.pid

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.popen.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.popen.kill()
        self.popen.wait(10)

    def wait(self, timeout_s: float = 30) -> int:
        """Wait for its end; its exit code."""
        try:
            return self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still there after {timeout_s} s:\n{self.output()[-4_000:]}") from None

    def memory(self) -> int:
        """Bytes it holds in memory."""
        return 1024 * int(self._status("VmRSS"))

    def threads(self) -> int:
        """How many threads it has."""
        return int(self._status("Threads"))

    def open_files(self) -> int:
        """How many files and sockets it has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def _status(self, name: str) -> str:
        [line] = [x for x in Path(f"/proc/{self.pid}/status").read_text().splitlines() if x.startswith(f"{name}:")]
        return line.split()[1]

    def output(self) -> str:
        """All it has written so far."""
        position = os.lseek(self.log.fileno(), 0, os.SEEK_CUR)
        text = os.pread(self.log.fileno(), max(position, 1 << 24), 0)
        return text.decode(errors="replace")

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """Its log lines, or those of one event."""
        found = []
        for line in self.output().splitlines():
            if line.startswith("{"):
                try:
                    found.append(json.loads(line))
                except ValueError:  # the last line may be half written
                    continue
        return [e for e in found if name is None or e.get("event") == name]

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.kill()
        self.log.close()


def is_alive(pid: int) -> bool:
    """Does a process still do anything? One that has ended may stay in the list until somebody asks for its code."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def worker(*args: str, env: dict[str, str] | None = None, url: str | None = None) -> Process:
    """A worker process."""
    return Process("runworker", *args, env=env, url=url)


def scheduler(*args: str, env: dict[str, str] | None = None, url: str | None = None) -> Process:
    """A scheduler process."""
    return Process("runscheduler", *args, env=env, url=url)
