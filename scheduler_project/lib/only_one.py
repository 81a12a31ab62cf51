"""One running instance per lock file: who it is, and how to ask it to end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


class AlreadyRunningError(RuntimeError):
    """Somebody else holds the lock; ``pid`` is his."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid} is running already")
        self.pid = pid


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Be the only one inside the block, all over the machine. The kernel frees the lock when we die.

    Raises:
        AlreadyRunningError: somebody else is inside.
    """
    with path.open("a+") as file:
        if not _lock(file):
            raise AlreadyRunningError(_pid_in(file))
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def end_running(path: Path, timeout_s: float) -> int | None:
    """Ask whoever is inside to end by SIGTERM and wait for it; his pid, None when nobody is.

    Raises:
        AlreadyRunningError: he is still there after ``timeout_s``.
    """
    if not path.exists():
        return None
    with path.open("r+") as file:
        if _lock(file):
            return None
        # The lock is his, so the pid is his as well and not one used again by another program.
        pid = _pid_in(file)
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        while not _lock(file):
            if time.monotonic() > deadline:
                raise AlreadyRunningError(pid)
            time.sleep(0.05)
    return pid


def _lock(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid_in(file: TextIO) -> int:
    file.seek(0)
    return int(file.read())
