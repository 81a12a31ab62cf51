"""Several worker processes as one: a Python process uses one core."""

from __future__ import annotations

import signal
import sys

from django.conf import settings

from scheduler_project.lib.child import ChildSpec
from scheduler_project.lib.console import Relay
from scheduler_project.lib.database import release_connection
from scheduler_project.lib.supervisor import Supervisor

#: On top of the grace of running jobs: a worker's own end.
_MARGIN_S = 15


def run_several(processes: int, arguments: list[str], metrics_port: int | None) -> int:
    """Keep ``processes`` workers running until told to stop; the exit code.

    One that dies is started again, later with each death in a row. SIGTERM drains them all, a second one lets them give
    everything back at once. Each serves metrics on a port of its own, counted up from the first.
    """
    release_connection()  # a session of the parent would only lie there
    first = settings.METRICS_PORT if metrics_port is None else metrics_port
    specs = [
        ChildSpec(
            f"worker-{number + 1}",
            [sys.executable, str(settings.BASE_DIR / "manage.py"), "runworker", *arguments, *_port(first, number)],
            {"PYTHONUNBUFFERED": "1"},
            settings.WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS + _MARGIN_S,
            hurry=signal.SIGTERM,
        )
        for number in range(processes)
    ]
    return Supervisor(specs, Relay(sys.stdout, [spec.name for spec in specs])).run()


def _port(first: int, number: int) -> list[str]:
    return ["--metrics-port", str(first + number if first else 0)]
