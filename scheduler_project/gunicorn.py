"""How gunicorn serves the web processes; the address comes from APP_API_HOST and APP_API_PORT."""

import asyncio
import os
import shutil
import tempfile
from typing import Any

from scheduler_project import env
from scheduler_project.lib.garbage import spare_what_stays

_host = env.text("API_HOST", "0.0.0.0")  # noqa: S104 - the specification's default
_port = env.integer("API_PORT", 3000, at_least=1, at_most=65_535)

bind = f"[{_host}]:{_port}" if ":" in _host else f"{_host}:{_port}"
proc_name = "punctual-web"
worker_class = "asgi"  # sockets and streams on an event loop; pages in threads of their own (asgi.py)
asgi_loop = "asyncio"
keepalive = 5
limit_request_line = 8_190  # gunicorn's most; query strings may hold names in any script
websocket_max_message_size = 64 * 1024  # taking the mask off is slow, and nobody has so much to say
graceful_timeout = 10
control_socket_disable = True  # nobody uses it, and it needs a writable folder
accesslog = None  # each request is an event of our own log
# The sign of life of a worker is a file: in memory, so that a slow disk can not make it look dead.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - gunicorn makes it private

_goodbyes: set[asyncio.Task[None]] = set()
_LOOK_EVERY_S = 0.1


def post_worker_init(worker: Any) -> None:
    """Close sockets and streams at once on SIGTERM: the worker itself would tell nobody until the grace is over."""
    spare_what_stays()

    async def say_goodbye() -> None:
        from jobs.live.door import the_hub

        while worker.alive:
            await asyncio.sleep(_LOOK_EVERY_S)
        the_hub().close()

    _goodbyes.add(worker.loop.create_task(say_goodbye()))


def on_starting(server: Any) -> None:
    """Metrics of all web workers meet in a folder of this start alone; set here: no other process may write there."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="punctual-metrics-")


def child_exit(server: Any, worker: Any) -> None:
    """A worker that is gone has no gauges; its counters stay."""
    from prometheus_client import multiprocess  # not before the folder is set: the library looks once, at its import

    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    """Leave nothing behind."""
    shutil.rmtree(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""), ignore_errors=True)
