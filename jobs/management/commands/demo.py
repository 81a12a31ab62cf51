"""``manage.py demo``: the whole product on this machine, with sample data, until Ctrl-C."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections  # noqa: TID251 - closed before children are forked

from scheduler_project import env
from scheduler_project.demo import banner
from scheduler_project.lib.child import ChildSpec
from scheduler_project.lib.console import Console
from scheduler_project.lib.embedded_pg import EmbeddedPostgres, EmbeddedPostgresError
from scheduler_project.lib.only_one import AlreadyRunningError, end_running, only_one
from scheduler_project.lib.supervisor import NAME, Supervisor

_GRACE_MARGIN_S = 10.0
_SLOW_START_S = 60.0


class Command(BaseCommand):
    help = "Runs web, workers and schedulers on the embedded PostgreSQL with sample data."
    requires_system_checks: list[str] = []  # migrate runs them, once there is a database

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=_number(1, 65_535), default=settings.API_PORT, help="of the web pages and API"
        )
        parser.add_argument("--workers", type=_number(0, 32), default=2, help="worker processes")
        parser.add_argument("--schedulers", type=_number(0, 8), default=2, help="scheduler processes; one is active")
        parser.add_argument("--no-seed", action="store_true", help="without sample data")
        parser.add_argument("--stop", action="store_true", help="end the demo of this checkout that is running")

    def handle(self, *args: Any, **options: Any) -> None:
        lock = settings.BASE_DIR / ".demo.lock"
        try:
            if options["stop"]:
                pid = end_running(lock, settings.WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS + 2 * _GRACE_MARGIN_S)
                self.stdout.write("The demo was not running." if pid is None else "The demo has stopped.")
                return
            # Until the supervisor takes over, an orderly stop means the same as Ctrl-C.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            with only_one(lock):
                code = self._run(options)
        except KeyboardInterrupt:
            raise SystemExit(130) from None
        except AlreadyRunningError as error:
            raise CommandError(
                f"A demo of this checkout is running as process {error.pid}; `make stop` ends it."
            ) from None
        except EmbeddedPostgresError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"The demo can not run here: {error}.") from error
        if code:
            raise SystemExit(code)

    def _run(self, options: dict[str, Any]) -> int:
        if settings.ENVIRONMENT != "development":
            raise CommandError(f"The demo is for development only: unset APP_ENV (it is {settings.ENVIRONMENT}).")
        # Not the product's default of all addresses: the demo's passwords and keys are known to everybody.
        host, port = env.text("API_HOST", "127.0.0.1"), options["port"]
        _check_port_is_free(host, port)
        with _database(settings.EMBEDDED, self.stdout.write):
            self._prepare(has_sample_data=not options["no_seed"])
            return _supervise(host, port, options)

    def _prepare(self, *, has_sample_data: bool) -> None:
        self.stdout.write("Preparing the tables …")
        call_command("migrate", verbosity=0, interactive=False)
        if has_sample_data:
            self.stdout.write("Loading the sample data …")
            call_command("seed", verbosity=0)
        connections.close_all()


@contextlib.contextmanager
def _database(embedded: EmbeddedPostgres | None, say: Callable[[str], object]) -> Iterator[None]:
    """The embedded PostgreSQL, if it is the database; stopped again unless it was running before."""
    if embedded is None:
        yield
        return
    was_running = embedded.alive()
    say("PostgreSQL is running already." if was_running else "Starting PostgreSQL …")
    try:
        embedded.ensure().create_database(settings.DATABASES["default"]["NAME"])
        yield
    finally:
        if not was_running:
            embedded.stop()
            with contextlib.suppress(OSError):  # nobody may be reading any more
                say("PostgreSQL has stopped.")


def _supervise(host: str, port: int, options: dict[str, Any]) -> int:
    specs = _children(host, port, options)
    console = Console(sys.stdout, [*(spec.name for spec in specs), NAME])
    return Supervisor(specs, console, on_tick=_Greeting(console, host, port, not options["no_seed"])).run()


def _children(host: str, port: int, options: dict[str, Any]) -> list[ChildSpec]:
    environment = {
        "APP_ENV": "development",
        "APP_API_HOST": host,
        "APP_API_PORT": str(port),
        "APP_LOG_FORMAT": env.text("LOG_FORMAT", "pretty"),
        "PYTHONUNBUFFERED": "1",
    }
    manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
    web = [
        sys.executable,
        "-m",
        "gunicorn",
        "-c",
        "scheduler_project/gunicorn.py",
        "scheduler_project.asgi:application",
    ]
    quiet = ["--metrics-port", "0"]  # several on one machine would want the same port
    grace_s = settings.WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS + _GRACE_MARGIN_S
    return [
        ChildSpec("web", web, environment, grace_s=2 * _GRACE_MARGIN_S),
        *(
            ChildSpec(f"worker-{number}", [*manage, "runworker", *quiet], environment, grace_s)
            for number in range(1, options["workers"] + 1)
        ),
        *(
            ChildSpec(f"scheduler-{number}", [*manage, "runscheduler", *quiet], environment, _GRACE_MARGIN_S)
            for number in range(1, options["schedulers"] + 1)
        ),
    ]


class _Greeting:
    """Shows the banner as soon as the web process is ready, or says once that it takes long."""

    def __init__(self, console: Console, host: str, port: int, has_sample_data: bool) -> None:
        self._console = console
        self._host, self._port = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port  # noqa: S104 - compared
        self._has_sample_data = has_sample_data
        self._slow_at = time.monotonic() + _SLOW_START_S
        self._is_done = False

    def __call__(self) -> None:
        if self._is_done:
            return
        if self._is_ready():
            shown = f"[{self._host}]" if ":" in self._host else self._host
            self._console.write(banner(f"http://{shown}:{self._port}", has_sample_data=self._has_sample_data))
            self._is_done = True
        elif time.monotonic() > self._slow_at:
            self._console.line(NAME, f"not ready after {_SLOW_START_S:.0f} s; the lines above should say why")
            self._slow_at = float("inf")

    def _is_ready(self) -> bool:
        # Not through urllib: a proxy of the user's environment has no business here.
        connection = http.client.HTTPConnection(self._host, self._port, timeout=1)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _check_port_is_free(host: str, port: int) -> None:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As gunicorn does: connections of a stopped demo that linger are not in the way.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise CommandError(
            f"Port {port} on {host} can not be used: {why}. Choose another with --port or APP_API_PORT."
        ) from error


def _number(at_least: int, at_most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if text.isascii() and text.isdigit() and at_least <= int(text) <= at_most:
            return int(text)
        raise ArgumentTypeError(f"a whole number from {at_least} to {at_most} is needed")

    return parse
