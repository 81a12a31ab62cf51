"""The nursery: a process beside a worker that forks the children in which isolated handlers run.

A worker has threads and must not fork. The nursery is what it was before it had any: forked off right after it had
read the handlers, at no cost. If it dies, another is started by ``exec``, which reads all anew. It has one thread and
no connection, and forks a child whenever the worker asks. As their parent it kills them without ever hitting a
process that was given the same number, and says how each ended. When the worker is gone, its end of the pipe closes:
then the nursery kills all and ends. When the nursery is gone, the kernel kills its children (Linux).

The worker sends lines: {"fork": id} together with the child's end of a socket, {"kill": id}. The answers:
{"ready": pid}, {"born": id, "pid": pid}, {"refused": id, "error": text}, {"gone": id, "code": exit
code, negative for a signal}.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from collections import deque
from typing import Any

SET_PDEATHSIG = 1
MAX_LINE_BYTES, MAX_FDS = 65_536, 16
#: If the kernel runs out of memory, children go before anybody else does.
OOM_SCORE = "800"
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class Nursery:
    """Forks and buries children until the worker is gone."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pending = b""
        #: Ends of sockets that came and whose lines have not been read yet.
        self._fds: deque[int] = deque()
        self._pids: dict[int, int] = {}
        self._wake, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        # Whoever stops the worker by a signal to its whole group means the worker: it drains, and then ends us.
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)

    def run(self) -> None:
        """Serve the worker."""
        self._say(ready=os.getpid())
        while True:
            control = self._control.fileno()
            ready = select.select([control, self._wake], [], [])[0]
            if self._wake in ready:
                os.read(self._wake, 4_096)
                self._bury()
            if control in ready and not self._listen():
                break
        for id_ in list(self._pids):
            self._kill(id_)

    def _listen(self) -> bool:
        """Read what the worker says; False once it is gone."""
        try:
            data, fds, _, _ = socket.recv_fds(self._control, MAX_LINE_BYTES, MAX_FDS)
        except OSError:
            return False
        self._fds.extend(fds)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "fork" in order:
                self._fork(order["fork"], self._fds.popleft())
            else:
                self._kill(order["kill"])
        return bool(data)

    def _fork(self, id_: int, fd: int) -> None:
        ours = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(fd)
            self._say(refused=id_, error=os.strerror(error.errno or 0))
            return
        if pid == 0:
            self._become_child(fd, ours)
        os.close(fd)
        self._pids[id_] = pid
        self._say(born=id_, pid=pid)

    def _become_child(self, fd: int, parent: int) -> None:
        """Never returns."""
        code = 1
        try:
            os.setsid()  # a group of its own, which is killed as a whole
            if _prctl:
                _prctl(SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self._wake, self._control.fileno(), *self._fds):
                os.close(other)
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
                score.write(OOM_SCORE)
            from jobs.worker.isolation import child

            child.serve(fd)
            code = 0
        except BaseException:  # noqa: BLE001 - boundary: nothing may climb into the nursery's own loop
            sys.excepthook(*sys.exc_info())
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _kill(self, id_: int) -> None:
        pid = self._pids.get(id_)
        if pid is not None:
            _send(pid, signal.SIGKILL)

    def _bury(self) -> None:
        """Say who has ended. Looked at before it is cleared away: its number, and its group's, can not be another's."""
        for id_, pid in list(self._pids.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            _send(pid, signal.SIGKILL)  # what it has started and left behind
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            del self._pids[id_]
            self._say(gone=id_, code=code)

    def _say(self, **message: Any) -> None:
        with contextlib.suppress(OSError):  # the worker is gone: the next look tells
            self._control.sendall(json.dumps(message).encode() + b"\n")


def _send(pid: int, number: int) -> None:
    """Send a signal to a child's group; to itself if it has none yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            os.kill(pid, number)


def serve(control: socket.socket) -> None:
    """Be the nursery of the worker at the other end, until it is gone."""
    from jobs.worker.isolation import child  # noqa: F401 - read here once, not in each child

    gc.collect()
    gc.freeze()  # what is there now stays in pages that children share
    Nursery(control).run()


def main() -> None:
    """Serve the worker whose socket has the number given on the command line."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    import django

    django.setup()
    from jobs.handlers.registry import discover
    from scheduler_project.lib.dbthreads import drop_connection

    discover()
    drop_connection()  # some module may have asked the database; a connection is nothing to share
    serve(control)


if __name__ == "__main__":
    main()
