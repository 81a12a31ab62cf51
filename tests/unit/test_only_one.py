"""One running instance per lock file, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_project.lib.only_one import AlreadyRunningError, end_running, only_one

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import signal, sys
from pathlib import Path
from scheduler_project.lib.only_one import only_one
signal.signal(signal.SIGTERM, eval(sys.argv[2]))
with only_one(Path(sys.argv[1])):
    print("in", flush=True)
    while True:
        signal.pause()
"""


def hold(lock: Path, on_term: str = "signal.SIG_DFL") -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock), on_term], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "in\n"
    return holder


def test_a_second_one_is_refused_and_told_who_the_first_is(tmp_path):
    lock = tmp_path / "lock"

    with hold(lock) as holder:
        with pytest.raises(AlreadyRunningError, match=str(holder.pid)), only_one(lock):
            pytest.fail("two at once")
        holder.kill()


def test_ending_waits_until_the_other_has_gone(tmp_path):
    lock = tmp_path / "lock"

    with hold(lock) as holder:
        assert end_running(lock, 30) == holder.pid

    with only_one(lock):
        assert int(lock.read_text()) == os.getpid()


def test_one_that_does_not_end_is_named(tmp_path):
    lock = tmp_path / "lock"

    with hold(lock, "signal.SIG_IGN") as holder:
        with pytest.raises(AlreadyRunningError, match=str(holder.pid)):
            end_running(lock, 0.1)
        holder.kill()


def test_there_is_nobody_to_end(tmp_path):
    lock = tmp_path / "lock"

    assert end_running(lock, 1) is None
    with only_one(lock):
        pass
    assert end_running(lock, 1) is None  # the file stays, its lock does not
