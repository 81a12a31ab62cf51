"""The port on which a worker or scheduler serves its metrics."""

from __future__ import annotations

import errno

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from prometheus_client import start_http_server

from scheduler_project.lib import logs

log = logs.get(__name__)

_OPTION = "--metrics-port"


def add_metrics_port(parser: CommandParser) -> None:
    """The option, for both commands."""
    told = "serve Prometheus metrics there; 0: not at all; APP_METRICS_PORT if not given"
    parser.add_argument(_OPTION, type=int, default=None, help=told)


def checked_port(port: int | None) -> int | None:
    """The option's value.

    Raises:
        CommandError: no port.
    """
    if port is not None and not 0 <= port <= 65_535:
        raise CommandError(f"{_OPTION} must be from 0 to 65535")
    return port


def serve_metrics(port: int | None) -> None:
    """Serve this process's metrics from a thread, on APP_METRICS_HOST.

    Args:
        port: None takes APP_METRICS_PORT. That is one for all processes of a machine: whoever comes second goes
            without, and says so.

    Raises:
        OSError: a port that was asked for by the option can not be had.
    """
    wanted = settings.METRICS_PORT if port is None else port
    if not wanted:
        return
    try:
        start_http_server(wanted, settings.METRICS_HOST)
    except OSError as error:
        if port is not None or error.errno != errno.EADDRINUSE:
            raise
        log.warning("metrics_port_taken", port=wanted, hint=f"{_OPTION} gives this process a port of its own")
