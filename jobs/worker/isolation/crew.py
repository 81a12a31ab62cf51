"""The worker's side of the nursery: children for isolated handlers, taken and given back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

from jobs.worker.isolation.nursery import serve
from jobs.worker.isolation.wire import Wire
from scheduler_project.lib import logs

log = logs.get(__name__)

_ROOT = Path(__file__).resolve().parent.parent.parent.parent
#: A child is let go after so many jobs, or when nobody wanted it for so long.
MOST_JOBS = 100
IDLE_S = 30.0
#: A nursery started anew reads all modules of handlers before it forks the first child.
READY_LIMIT_S = 60.0
GONE_LIMIT_S = 5.0


class NoChild(Exception):
    """No child could be had; says why."""


class Child:
    """A process that runs one handler at a time."""

    def __init__(self, id_: int, wire: Wire, nursery: Nursery) -> None:
        self.id, self.wire, self._nursery = id_, wire, nursery
        self.pid: int | None = None
        self.error: str | None = None
        self.jobs = 0
        self.idle_since = 0.0
        #: Exit code, negative for a signal; None while it lives.
        self.code: int | None = None
        self.is_born, self.is_gone = threading.Event(), threading.Event()

    def kill(self) -> None:
        """End it and all it has started, at once."""
        if self._nursery.is_dead and self.pid is not None:  # where the kernel does not see to it
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._nursery.say(kill=self.id)


class Nursery:
    """The process that forks, as long as it lives."""

    def __init__(self, control: socket.socket, pid: int) -> None:
        self._lock = threading.Lock()
        self._ids = count(1)
        self.children: dict[int, Child] = {}
        self.is_dead = False
        self._is_ready, self._is_gone = threading.Event(), threading.Event()
        self._control, self._pid = control, pid

    @classmethod
    def forked(cls) -> Nursery:
        """This very process as it is now; only while it has no other thread and no connection."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid:
            theirs.close()
            return cls(ours, pid)
        try:
            os.setsid()  # a Ctrl-C in the terminal must not reach it before the worker has drained
            ours.close()
            serve(theirs)
        finally:
            os._exit(0)

    @classmethod
    def executed(cls) -> Nursery:
        """A new program."""
        ours, theirs = socket.socketpair()
        with theirs:
            started = subprocess.Popen(
                [sys.executable, "-m", "jobs.worker.isolation.nursery", str(theirs.fileno())],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        started.returncode = 0  # it is waited for below; this keeps Popen out of it
        return cls(ours, started.pid)

    def listen(self) -> None:
        """Begin to hear what it says."""
        threading.Thread(target=self._listen, name="nursery", daemon=True).start()

    def fork(self) -> Child:
        """A new child.

        Raises:
            NoChild: it could not be had.
        """
        if not self._is_ready.wait(READY_LIMIT_S) or self.is_dead:
            raise NoChild("the nursery did not start")
        ours, theirs = socket.socketpair()
        child = Child(next(self._ids), Wire(ours), self)
        self.children[child.id] = child
        line = json.dumps({"fork": child.id}).encode() + b"\n"
        with theirs, self._lock, contextlib.suppress(OSError):
            socket.send_fds(self._control, [line], [theirs.fileno()])
        if not child.is_born.wait(READY_LIMIT_S) or child.pid is None:
            child.wire.close()
            raise NoChild(child.error or "the nursery is gone")
        return child

    def say(self, **message: Any) -> None:
        """Tell the nursery."""
        with self._lock, contextlib.suppress(OSError):
            self._control.sendall(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """End all of it."""
        if not self._is_ready.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)  # it still reads modules and hears nothing
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        self._is_gone.wait(GONE_LIMIT_S)

    def _listen(self) -> None:
        pending = b""
        while True:
            try:
                data = self._control.recv(65_536)
            except OSError:
                data = b""
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self._hear(json.loads(line))
        self.is_dead = True
        self._is_ready.set()
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._is_gone.set()
        if code:
            log.warning("nursery_died", exit_code=code)
        for child in list(self.children.values()):
            child.is_born.set()
            child.is_gone.set()

    def _hear(self, answer: dict[str, Any]) -> None:
        if "ready" in answer:
            log.info("nursery_ready", pid=answer["ready"])
            self._is_ready.set()
        elif "born" in answer:
            child = self.children[answer["born"]]
            child.pid = answer["pid"]
            child.is_born.set()
        elif "refused" in answer:
            child = self.children.pop(answer["refused"])
            child.error = f"no process could be forked: {answer['error']}"
            child.is_born.set()
        else:
            child = self.children.pop(answer["gone"])
            child.code = answer["code"]
            child.is_gone.set()


class Crew:
    """Children at hand: idle ones are used again, and let go after a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nursery: Nursery | None = None
        self._idle: list[Child] = []
        self._is_closed = False

    def fork(self) -> None:
        """Fork the nursery off; before this process has threads or a connection, of which a copy would be no good."""
        self._nursery = Nursery.forked()

    def start(self) -> None:
        """Hear what the nursery says."""
        if self._nursery is not None:
            self._nursery.listen()

    def take(self) -> Child:
        """A child without a job.

        Raises:
            NoChild: none could be had.
        """
        with self._lock:
            self._let_go()
            nursery = self._living()
            child = self._idle.pop() if self._idle else None
        if child is None:
            child = nursery.fork()
            log.debug("child_forked", pid=child.pid)
        child.jobs += 1
        return child

    def give_back(self, child: Child, *, is_clean: bool) -> None:
        """The job of a child has ended. One that it left something of itself in is used no more."""
        with self._lock:
            if is_clean and child.jobs < MOST_JOBS and not child.is_gone.is_set() and not self._is_closed:
                child.idle_since = time.monotonic()
                self._idle.append(child)
            else:
                child.wire.close()
            self._let_go()

    def close(self) -> None:
        """Let all go; what runs is killed."""
        with self._lock:
            self._is_closed = True
            nursery, self._nursery = self._nursery, None
        if nursery is not None:
            nursery.close()

    def tidy(self) -> None:
        """Let go who was idle for long; to be called now and then."""
        if self._idle:
            with self._lock:
                self._let_go()

    def pids(self) -> list[int]:
        """The processes there are."""
        nursery = self._nursery
        return [] if nursery is None else [c.pid for c in list(nursery.children.values()) if c.pid is not None]

    def _living(self) -> Nursery:
        if self._is_closed:
            raise NoChild("the worker is ending")
        if self._nursery is None or self._nursery.is_dead:
            self._idle.clear()
            try:
                self._nursery = Nursery.executed()
                self._nursery.listen()
            except OSError as error:
                raise NoChild(f"the nursery could not be started: {os.strerror(error.errno or 0)}") from error
        return self._nursery

    def _let_go(self) -> None:
        limit = time.monotonic() - IDLE_S
        for child in [c for c in self._idle if c.idle_since < limit or c.is_gone.is_set()]:
            self._idle.remove(child)
            child.wire.close()
