"""Who serves a data folder. A pid in a lock file proves nothing: its process may be dead, unreaped, or another one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from scheduler_project.lib.embedded.errors import EmbeddedPostgresError

STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


def find_postmaster(data: Path) -> int | None:
    """The pid of the server on ``data``, ready or not; None when there is none, whatever postmaster.pid says."""
    pid = _pid_in(data / "postmaster.pid")
    return pid if pid and _serves(pid, data) else None


def drop_stale_locks(data: Path, socket_lock: Path) -> None:
    """Remove lock files whose server is gone, which PostgreSQL itself does not dare.

    It refuses to start over the pid of a dead process that nobody has reaped yet (containers whose first process is
    slow at that, or never does it) and over a pid that another program has now. Backends that outlived their server
    stay guarded against: the new one finds their shared memory by the data folder itself.
    """
    for lock in (data / "postmaster.pid", socket_lock):
        pid = _pid_in(lock)
        if pid is not None and not _serves(pid, data):
            lock.unlink(missing_ok=True)


def stop_postmaster(data: Path, mode: str, timeout_s: float) -> bool:
    """Stop the server on ``data`` and wait for its end; False when there was none.

    By signal, not by pg_ctl: it works when the programs that started it are no longer installed.
    """
    pid = find_postmaster(data)
    if pid is None:
        return False
    os.kill(pid, STOP_SIGNALS[mode])
    deadline = time.monotonic() + timeout_s
    while find_postmaster(data) == pid:
        if time.monotonic() > deadline:
            raise EmbeddedPostgresError(
                f"PostgreSQL (process {pid}) did not stop within {timeout_s:.0f} s. Close what is connected to it, "
                "or stop it with mode immediate."
            )
        time.sleep(0.02)
    return True


def _pid_in(lock: Path) -> int | None:
    """The pid a lock file names, 0 for a file left empty by a crash, None without a file."""
    try:
        first = lock.read_text(errors="replace").split("\n", 1)[0].strip()
    except FileNotFoundError:
        return None
    # A server in single-user mode writes its pid with a minus sign.
    return abs(int(first)) if first.removeprefix("-").isdigit() else 0


def _serves(pid: int, data: Path) -> bool:
    state, command = _process_state(pid)
    if state in {"", "Z", "X"}:
        return False
    try:
        # A server lives in its data folder. In a copied checkout the copied pid is that of the original's server.
        return os.path.samefile(f"/proc/{pid}/cwd", data)
    except OSError:  # no /proc here, or not allowed to look
        return command == "postgres"


def _process_state(pid: int) -> tuple[str, str]:
    """The state letter and the program's name; empty when there is no such process."""
    if pid <= 0:
        return "", ""
    if Path("/proc/self/stat").exists():
        try:
            before, _, after = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
        except OSError:
            return "", ""
        return after.split()[0], before.partition("(")[2]
    command = ["ps", "-o", "stat=,comm=", "-p", str(pid)]  # macOS
    words = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split(None, 1)
    return (words[0][0], Path(words[1].strip()).name) if len(words) == 2 else ("", "")
