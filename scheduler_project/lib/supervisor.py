"""Runs several programs as one: shows their lines, restarts what dies, stops all in good order.

It must run in the main thread of a process without other threads: signals arrive there, and children are forked.
"""

from __future__ import annotations

import contextlib
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from scheduler_project.lib.child import Child, ChildSpec, describe_end
from scheduler_project.lib.console import Console

NAME = "supervisor"
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def backoff_s(deaths_in_a_row: int, first_s: float = 0.5, longest_s: float = 30.0) -> float:
    """Seconds before the next start: doubled with each death in a row."""
    return float(min(first_s * 2 ** min(deaths_in_a_row - 1, 30), longest_s))


class Supervisor:
    """Starts the children in order and keeps them running until SIGINT, SIGTERM or SIGHUP.

    Args:
        specs: in the order of their start; they are stopped in the reverse order.
        console: shows their lines.
        on_tick: called every ``tick_s`` seconds at most; must be quick, since nothing else happens meanwhile.
        steady_s: a child that ran this long counts as healthy again: its next death waits the shortest time.
    """

    def __init__(
        self,
        specs: Sequence[ChildSpec],
        console: Console,
        on_tick: Callable[[], None] | None = None,
        tick_s: float = 0.25,
        steady_s: float = 20.0,
    ) -> None:
        self._children = [Child(spec) for spec in specs]
        self._console = console
        self._on_tick = on_tick
        self._tick_s, self._tick_at = tick_s, 0.0
        self._steady_s = steady_s
        self._stop_requests = 0
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Return after a stop: 0 if every child ended by itself in its grace, 1 if one had to be killed."""
        with self._signals(), self._selector:
            try:
                while not self._stop_requests and not self._console.is_broken:
                    self._start_due()
                    self._wait()
                    self._bury_dead()
                    self._tick()
                return self._wind_down()
            finally:
                self._kill_all()  # nothing is left when the loop itself failed

    # -- while running ----------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        for child in self._children:
            if child.pid is None and child.start_at <= time.monotonic():
                try:
                    child.start()
                except OSError as error:
                    self._retry_later(child, f"can not be started: {error}")
                    continue
                if child.output:
                    self._selector.register(child.output, selectors.EVENT_READ, child)

    def _wait(self) -> None:
        """Sleep until a child writes, a signal comes or a tick has passed; show what was written."""
        for key, _ in self._selector.select(self._tick_s):
            if isinstance(key.data, Child):
                self._show(key.data, key.data.read_lines())
            else:
                self._count_signals(key.data)

    def _tick(self) -> None:
        if self._on_tick and time.monotonic() >= self._tick_at:
            self._on_tick()
            self._tick_at = time.monotonic() + self._tick_s

    def _show(self, child: Child, lines: Iterator[str]) -> None:
        output = child.output
        for line in lines:
            self._console.line(child.spec.name, line)
        if output and output.closed:
            self._forget(output)

    def _bury_dead(self) -> None:
        for child in self._children:
            code = child.find_end()
            if code is None:
                continue
            ran_s = time.monotonic() - child.started_at
            if ran_s >= self._steady_s:
                child.deaths_in_a_row = 0
            self._clear_away(child)
            self._retry_later(child, f"{describe_end(code)} after {ran_s:.1f} s")

    def _retry_later(self, child: Child, why: str) -> None:
        child.deaths_in_a_row += 1
        delay_s = backoff_s(child.deaths_in_a_row)
        child.start_at = time.monotonic() + delay_s
        self._console.line(NAME, f"{child.spec.name} {why}; it starts again in {delay_s:g} s")

    # -- the end ----------------------------------------------------------------------------------------------

    def _wind_down(self) -> int:
        running = [child for child in reversed(self._children) if child.pid is not None]
        names = ", ".join(child.spec.name for child in running) or "nothing is running"
        again = "kills" if all(child.spec.hurry is signal.SIGKILL for child in running) else "hurries them"
        self._console.line(NAME, f"stopping: {names} (Ctrl-C again {again} at once)")
        for child in running:
            child.kill_at = time.monotonic() + child.spec.grace_s
            child.signal(signal.SIGTERM)
        return 1 if self._wait_for_ends(running) else 0

    def _wait_for_ends(self, running: list[Child]) -> list[Child]:
        """Wait until all have ended; those that had to be killed."""
        killed: list[Child] = []
        hurried: list[Child] = []
        requests = self._stop_requests
        while running:
            self._wait()
            is_impatient = self._stop_requests > requests
            for child in [child for child in running if child.find_end() is not None]:
                self._clear_away(child)
                running.remove(child)
            for child in running:
                if is_impatient and child not in hurried and child.spec.hurry is not signal.SIGKILL:
                    self._console.line(NAME, f"hurrying {child.spec.name}")
                    child.signal(child.spec.hurry)
                    hurried.append(child)
                elif child not in killed and (
                    time.monotonic() >= child.kill_at or (is_impatient and child not in hurried)
                ):
                    self._console.line(NAME, f"killing {child.spec.name}")
                    child.signal(signal.SIGKILL)
                    killed.append(child)
        return killed

    def _clear_away(self, child: Child) -> None:
        output = child.output
        self._show(child, child.clear_away())
        if output:
            self._forget(output)

    def _forget(self, output: object) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(output)  # type: ignore[arg-type]

    def _kill_all(self) -> None:
        for child in self._children:
            if child.pid is not None:
                child.signal(signal.SIGKILL)

    # -- signals ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """The interpreter writes the number of each signal into a socket; the loop reads it when it is ready to."""
        reader, writer = socket.socketpair()
        with reader, writer:
            reader.setblocking(False)
            writer.setblocking(False)
            self._selector.register(reader, selectors.EVENT_READ, reader)
            before_fd = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
            before = {number: signal.signal(number, _note) for number in (*self._stops(), signal.SIGCHLD)}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
                signal.set_wakeup_fd(before_fd)

    @staticmethod
    def _stops() -> list[signal.Signals]:
        # Under nohup the loss of the terminal is meant to be ignored.
        return [number for number in _STOPS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]

    def _count_signals(self, reader: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            self._stop_requests += sum(number in _STOPS for number in reader.recv(4096))


def _note(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: that there is a handler makes the interpreter write to the socket."""
