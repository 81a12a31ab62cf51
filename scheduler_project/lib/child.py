"""One child process of a supervisor: started in a group of its own, read line by line, signalled with all its kin."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

_CHUNK_BYTES = 65_536
_CHUNKS_A_TURN = 16  # one that writes without end must not keep us from the others
_PR_SET_PDEATHSIG = 1
# Looked up once here: between fork and exec a child should do as little as can be.
_prctl: Callable[[int, int], int] | None = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run, and how.

    Args:
        name: shown before each of its lines.
        arguments: the program and its arguments; no shell.
        environment: added to ours.
        drops: variables of ours that begin like this are not handed on.
        grace_s: seconds from SIGTERM to SIGKILL.
        hurry: what a second request to stop sends it; a program that gives its work back then wants SIGTERM again.
    """

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    grace_s: float = 10.0
    hurry: signal.Signals = signal.SIGKILL
    drops: str | None = None


class Child:
    """The running program of a spec, or the wait for its next start."""

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.deaths_in_a_row = 0
        self.started_at = self.start_at = self.kill_at = 0.0  # of the monotonic clock
        self._process: subprocess.Popen[bytes] | None = None
        self._unfinished = b""

    @property
    def pid(self) -> int | None:
        """The pid, also the number of its group; None when it does not run."""
        return self._process.pid if self._process else None

    @property
    def output(self) -> IO[bytes] | None:
        """What it writes, standard output and errors together."""
        return self._process.stdout if self._process else None

    def start(self) -> None:
        """Start the program.

        Raises:
            OSError: it can not be started.
        """
        ours = os.getpid()
        self._process = subprocess.Popen(
            self.spec.arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**self._inherited(), **self.spec.environment},
            # A session of its own: Ctrl-C reaches us only, and we stop the children in good order.
            start_new_session=True,
            # Run by the forked child alone; safe because a supervisor has one thread.
            preexec_fn=lambda: _die_with(ours),
        )
        self.started_at = time.monotonic()
        self._unfinished = b""
        if self._process.stdout:
            os.set_blocking(self._process.stdout.fileno(), False)

    def read_lines(self) -> Iterator[str]:
        """The whole lines it has written since, without waiting; a line without end comes in pieces."""
        for _ in range(_CHUNKS_A_TURN):
            if not self.output or self.output.closed:
                return
            try:
                chunk = os.read(self.output.fileno(), _CHUNK_BYTES)
            except BlockingIOError:
                return
            if not chunk:  # it and all its kin have closed it
                self.output.close()
                yield from self._rest()
                return
            *whole, self._unfinished = (self._unfinished + chunk).split(b"\n")
            yield from map(_text, whole)
            if len(self._unfinished) > _CHUNK_BYTES:
                yield from self._rest()

    def find_end(self) -> int | None:
        """The return code once it has ended: negative for a signal; None while it runs."""
        return self._process.poll() if self._process else None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and all its kin in its group."""
        if self._process:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def clear_away(self) -> Iterator[str]:
        """After its end: kill what it left behind in its group, and hand out its last words."""
        self.signal(signal.SIGKILL)
        yield from self.read_lines()
        yield from self._rest()
        if self.output:
            self.output.close()
        self._process = None

    def _inherited(self) -> dict[str, str]:
        dropped = self.spec.drops
        return {k: v for k, v in os.environ.items() if dropped is None or not k.startswith(dropped)}

    def _rest(self) -> Iterator[str]:
        rest, self._unfinished = self._unfinished, b""
        if rest:
            yield _text(rest)


def describe_end(code: int) -> str:
    """How a program ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode("utf-8", "replace")


def _die_with(parent: int) -> None:
    """Ask the kernel to stop this process when its parent dies, even by SIGKILL. Linux only."""
    if _prctl:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before we asked
            os.kill(os.getpid(), signal.SIGTERM)
