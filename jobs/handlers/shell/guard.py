"""A small program between the worker and a command: it starts the command and sees to its end, whatever comes first.

It is run by its path, alone and isolated, and needs the standard library only. Standard input: one line of JSON, the
order; then the worker keeps the pipe open. When it closes, because the worker wants so or is dead, all that the command
has started is ended: SIGTERM, a pause, SIGKILL. A line with a number before that sets the pause. Standard output
belongs to the command. Standard error takes one line of JSON at the end: how it went.

Order: {"program": path, "argv": [..], "env": {..}, "stdin": text or null, "cwd": path or null, "timeout_s": seconds,
"pause_s": seconds}. Report: {"code": exit code, negative for a signal, "why": null or "timeout" or "stopped"}, or
{"error": text, "is_final": bool} if it could not be started.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36
MAX_KILL_S = 5.0
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def read_order() -> tuple[dict[str, Any], bytes]:
    """The order and what came behind it; ends the program if the worker is gone before it was complete."""
    data = bytearray()
    while b"\n" not in data[-65_536:]:
        chunk = os.read(0, 65_536)
        if not chunk:
            sys.exit(0)
        data += chunk
    line, _, rest = bytes(data).partition(b"\n")
    return json.loads(line), rest


def start(order: dict[str, Any], cwd: str) -> int:
    """Start the command in a session of its own; its process id, which is also its group's number."""
    ours = os.getpid()

    def die_with_guard() -> None:
        # Only this thread exists here, so Python between fork and exec is safe.
        if _prctl:
            _prctl(SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != ours:
                os._exit(1)

    with tempfile.TemporaryFile() as given:
        given.write((order["stdin"] or "").encode())
        given.seek(0)
        started = subprocess.Popen(
            order["argv"],
            executable=order["program"],
            env=order["env"],
            cwd=cwd,
            stdin=subprocess.DEVNULL if order["stdin"] is None else given,
            stdout=1,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_guard,
        )
    started.returncode = 0  # it is waited for below; this keeps Popen out of it
    return started.pid


class Kin:
    """A command and all that it has started, also what has left its group: orphans become the guard's children."""

    def __init__(self, pid: int, wake: int) -> None:
        self.pid, self._wake = pid, wake

    def has_ended(self) -> bool:
        """Has the command itself ended? It stays a zombie, so that no other can get its number."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def others(self) -> list[int]:
        """Children of the guard except the command; those that have ended are cleared away."""
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as listed:
                pids = [int(pid) for pid in listed.read().split()]
        except OSError:
            return []
        alive = []
        for pid in pids:
            if pid != self.pid:
                with contextlib.suppress(ChildProcessError):
                    if os.waitpid(pid, os.WNOHANG) == (0, 0):
                        alive.append(pid)
        return alive

    def send(self, number: int) -> None:
        """Send a signal to all."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        for pid in self.others():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def wait_gone(self, limit_s: float, number: int | None = None) -> None:
        """Wait until all are gone, sending the signal again and again to those that appear meanwhile."""
        until = time.monotonic() + limit_s
        while not (self.has_ended() and not self.others()) and time.monotonic() < until:
            if number is not None:
                self.send(number)
            self.pause(0.02)

    def pause(self, seconds: float) -> None:
        """Wait for a signal, at most so long."""
        if select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 512)

    def kill(self) -> int:
        """Kill all that is left; the command's exit code."""
        self.send(signal.SIGKILL)
        self.wait_gone(MAX_KILL_S, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def watch(kin: Kin, wake: int, timeout_s: float, rest: bytes) -> tuple[str | None, bytes]:
    """Wait for the first of: the command's end (None), the timeout, or the worker's wish or death ("stopped")."""
    until, wish = time.monotonic() + timeout_s, rest
    while not kin.has_ended():
        left_s = until - time.monotonic()
        if left_s <= 0:
            return "timeout", b""
        ready = select.select([0, wake], [], [], left_s)[0]
        if wake in ready and any(number != signal.SIGCHLD for number in os.read(wake, 512)):
            return "stopped", b""
        if 0 in ready:
            chunk = os.read(0, 512)
            if not chunk:
                return "stopped", wish
            wish += chunk
        kin.others()
    return None, b""


def run(order: dict[str, Any], rest: bytes, cwd: str) -> dict[str, Any]:
    """Start, watch, end; the report."""
    if _prctl:
        _prctl(SET_CHILD_SUBREAPER, 1)
    wake, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        pid = start(order, cwd)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        code = getattr(error, "errno", None)
        text = os.strerror(code) if code else type(error).__name__
        return {"error": text, "is_final": code in (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC)}
    kin = Kin(pid, wake)
    why, wish = watch(kin, wake, order["timeout_s"], rest)
    if why is not None:
        kin.send(signal.SIGTERM)
        pause_s = order["pause_s"]
        with contextlib.suppress(ValueError):
            pause_s = min(pause_s, float(wish)) if wish else pause_s
        kin.wait_gone(pause_s)
    return {"code": kin.kill(), "why": why}


def main() -> None:
    """Take the order, carry it out, report."""
    order, rest = read_order()
    own = None if order["cwd"] else tempfile.mkdtemp(prefix="punctual-")
    try:
        report = run(order, rest, order["cwd"] or own or "/")
    finally:
        if own:
            shutil.rmtree(own, ignore_errors=True)
    with contextlib.suppress(OSError):  # the worker may be gone
        os.write(2, json.dumps(report).encode() + b"\n")


if __name__ == "__main__":
    main()
