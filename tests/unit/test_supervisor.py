"""The supervisor over real children: lines, restarts, stops, and never an orphan."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from scheduler_project.lib.child import describe_end
from scheduler_project.lib.supervisor import backoff_s
from tests.processes import is_alive

ROOT = Path(__file__).resolve().parents[2]

PRELUDE = """
import sys
from scheduler_project.lib.child import ChildSpec
from scheduler_project.lib.console import Console
from scheduler_project.lib.supervisor import Supervisor

def child(name, source, grace_s=30.0):
    return ChildSpec(name, [sys.executable, "-u", "-c", source], {"GREETING": "hello"}, grace_s)

def supervise(*specs, **options):
    raise SystemExit(Supervisor(specs, Console(sys.stdout, [spec.name for spec in specs]), **options).run())
"""
POLITE = """
import os, signal, sys
def end(*_):
    print("bye", flush=True); os._exit(0)
signal.signal(signal.SIGTERM, end)
print("up", os.getpid(), flush=True)
while True: signal.pause()
"""
STUBBORN = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: print("no", flush=True))
print("up", os.getpid(), flush=True)
while True: signal.pause()
"""
STUBBORN_KIN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("kin up", flush=True)
signal.pause()
"""
PARENT = f"""
import signal, subprocess, sys
kin = subprocess.Popen([sys.executable, "-c", {STUBBORN_KIN!r}])
print("up", kin.pid, flush=True)
signal.pause()
"""
GREETER = """
import os
print(os.environ["GREETING"])
print("no end", end="")
"""
TO_STDERR = """
import signal, sys
print("to stderr", file=sys.stderr)
signal.pause()
"""


class Watched:
    """A supervisor in a process of its own, as it is meant to run."""

    def __init__(self, script: str, **environment: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + script],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first line from here on that matches; the test's time limit ends a vain wait."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if found := re.search(pattern, line):
                return found
        pytest.fail(f"no line like {pattern!r} in {self.lines}")

    def wait_for_all(self, patterns: set[str]) -> None:
        """One line for each pattern, in any order."""
        while patterns:
            self.wait_for("|".join(patterns))
            patterns = {pattern for pattern in patterns if not re.search(pattern, self.lines[-1])}

    def end(self) -> int:
        """Read all the rest; the exit code."""
        assert self.process.stdout is not None
        self.lines += self.process.stdout.read().splitlines()
        return self.process.wait()


@pytest.fixture
def watch() -> Iterator[Callable[..., Watched]]:
    watched: list[Watched] = []

    def start(script: str, **environment: str) -> Watched:
        watched.append(Watched(script, **environment))
        return watched[-1]

    yield start
    for each in watched:
        each.process.kill()
        each.process.wait()
        if each.process.stdout:
            each.process.stdout.close()


def wait_until(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


def test_lines_of_all_children_carry_their_names(watch):
    watched = watch(f"supervise(child('a', {GREETER!r}), child('long', {TO_STDERR!r}))")

    watched.wait_for_all({r"^a    \| hello$", r"^a    \| no end$", r"^long \| to stderr$"})

    assert "\033" not in "".join(watched.lines)


def test_a_dead_child_starts_again_after_growing_delays_and_the_reason_is_said(watch):
    watched = watch(f"supervise(child('a', 'raise SystemExit(3)'), child('b', {POLITE!r}))")

    first = watched.wait_for(r"supervisor \| a ended with exit code 3 after .* starts again in (\S+) s")
    second = watched.wait_for(r"supervisor \| a ended with exit code 3 after .* starts again in (\S+) s")
    watched.process.send_signal(signal.SIGTERM)

    assert (first[1], second[1]) == ("0.5", "1")
    assert watched.end() == 0


def test_a_killed_child_starts_again(watch):
    watched = watch(f"supervise(child('a', {POLITE!r}))")
    killed = int(watched.wait_for(r"up (\d+)")[1])

    os.kill(killed, signal.SIGKILL)

    watched.wait_for("a was killed by SIGKILL")
    assert int(watched.wait_for(r"up (\d+)")[1]) != killed


def test_a_program_that_is_missing_is_tried_again(watch):
    watched = watch("supervise(ChildSpec('a', ['/nowhere/program']))")

    watched.wait_for(r"a can not be started: .*/nowhere/program.* starts again in 0.5 s")
    watched.wait_for(r"starts again in 1 s")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_ends_the_children_in_reverse_order_and_exits_with_zero(watch, number):
    watched = watch(f"supervise(child('a', {POLITE!r}), child('b', {POLITE!r}))")
    watched.wait_for_all({"^a .* up", "^b .* up"})

    watched.process.send_signal(number)

    assert watched.end() == 0
    assert "supervisor | stopping: b, a (Ctrl-C again kills at once)" in watched.lines
    assert {"a | bye", "b | bye"} <= set(watched.lines)


def test_a_child_that_will_not_stop_is_killed_after_its_grace(watch):
    watched = watch(f"supervise(child('a', {STUBBORN!r}, grace_s=0.5))")
    pid = int(watched.wait_for(r"up (\d+)")[1])

    watched.process.send_signal(signal.SIGTERM)

    assert watched.end() == 1
    assert watched.lines[-1] == "supervisor | killing a"
    assert not is_alive(pid)


def test_a_second_ctrl_c_kills_at_once(watch):
    watched = watch(f"supervise(child('a', {STUBBORN!r}, grace_s=3600))")
    watched.wait_for("up")
    watched.process.send_signal(signal.SIGINT)
    watched.wait_for(r"a \| no")

    watched.process.send_signal(signal.SIGINT)

    assert watched.end() == 1


@pytest.mark.parametrize("ending", ["stop", "death"])
def test_what_a_child_leaves_behind_in_its_group_is_killed(watch, ending):
    watched = watch(f"supervise(child('a', {PARENT!r}))")
    watched.wait_for_all({r"a \| up \d", "kin up"})
    kin = int(re.findall(r"a \| up (\d+)", "\n".join(watched.lines))[0])

    if ending == "stop":
        watched.process.send_signal(signal.SIGTERM)
        watched.end()
    else:
        os.kill(psutil.Process(kin).ppid(), signal.SIGKILL)
        watched.wait_for("a was killed by SIGKILL")

    wait_until(lambda: not is_alive(kin))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
def test_children_of_a_killed_supervisor_stop(watch):
    watched = watch(f"supervise(child('a', {POLITE!r}), child('b', {POLITE!r}))")
    pids = [int(watched.wait_for(r"up (\d+)")[1]) for _ in range(2)]

    watched.process.kill()

    wait_until(lambda: not any(map(is_alive, pids)))


def test_it_stops_when_nobody_reads_it_any_more_even_if_it_has_nothing_to_say(watch):
    watched = watch(f"supervise(child('a', {POLITE!r}))")
    pid = int(watched.wait_for(r"a \| up (\d+)")[1])

    watched.process.stdout.close()

    assert watched.process.wait() == 0
    assert not is_alive(pid)


def test_it_stops_when_its_terminal_closes_and_no_signal_comes(watch):
    ours, its = os.openpty()
    on_terminal = f"sys.stdout = open({os.ttyname(its)!r}, 'w'); supervise(child('a', {POLITE!r}))"
    watched = watch(f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {on_terminal}")
    said = b""
    while b"up" not in said:
        said += os.read(ours, 4096)
    os.close(its)

    os.close(ours)

    assert watched.process.wait() == 0


def test_a_failure_of_its_own_leaves_no_child_behind(watch):
    watched = watch(f"supervise(child('a', {POLITE!r}), on_tick=lambda: 1 / 0)")

    code = watched.end()

    assert code == 1
    assert "ZeroDivisionError" in "".join(watched.lines)
    if found := re.search(r"up (\d+)", "\n".join(watched.lines)):
        wait_until(lambda: not is_alive(int(found[1])))


def test_colour_is_forced_by_the_environment(watch):
    watched = watch("supervise(child('a', 'print(1)'))", FORCE_COLOR="1", NO_COLOR="")

    watched.wait_for("\033\\[36ma \\|\033\\[0m 1")


def test_a_delay_doubles_up_to_its_limit():
    assert [backoff_s(n) for n in (1, 2, 3, 7, 8, 9_999)] == [0.5, 1, 2, 30, 30, 30]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (-9, "was killed by SIGKILL"),
        (-64, "was killed by SIGRTMAX"),
        (-99, "was killed by signal 99"),
    ],
)
def test_an_end_is_told_in_words(code, words):
    assert describe_end(code) == words
