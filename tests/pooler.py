"""A real PgBouncer in transaction mode before the tests' PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import psycopg
from django.db import connection

from scheduler_project.lib.embedded.owner import Owner, pick_owner
from tests.waiting import wait_until

PORT = 6432  # no TCP listener: it only names the socket file
#: Debian keeps it where a plain account does not look.
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")
MISSING = "pgbouncer is not installed (Debian has it)"

#: Round robin: each transaction meets another session of the server than the one before it, if there is one. Whoever
#: left something in a session does not find it again.
_SETTINGS = """
[databases]
* = host={host} port={port} user={user}{password}

[pgbouncer]
listen_addr =
listen_port = {own_port}
unix_socket_dir = {folder}
auth_type = any
admin_users = admin
pool_mode = transaction
default_pool_size = 12
min_pool_size = 4
max_client_conn = 400
server_round_robin = 1
"""


@dataclass(frozen=True, slots=True)
class Pooler:
    """One that runs."""

    folder: Path
    process: subprocess.Popen[bytes]
    said: IO[bytes]

    def url(self, database: str = "") -> str:
        """The address of a database through it; the tests' unless told."""
        found = connection.settings_dict
        name = database or found["NAME"]
        return f"postgresql://{found['USER']}@/{name}?host={quote(str(self.folder), safe='')}&port={PORT}"

    def connect(self) -> psycopg.Connection[Any]:
        """A session through it, without prepared statements, in autocommit."""
        return psycopg.connect(self.url(), autocommit=True, prepare_threshold=None)

    def show(self, what: str) -> list[dict[str, Any]]:
        """The answer of its console to SHOW: pools, clients, servers, stats."""
        address = f"postgresql://admin@/pgbouncer?host={quote(str(self.folder), safe='')}&port={PORT}"
        with psycopg.connect(address, autocommit=True, cursor_factory=psycopg.ClientCursor) as console:
            cursor = console.execute(f"show {what}".encode())
            names = [column.name for column in cursor.description or []]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def output(self) -> str:
        """What it has written so far."""
        self.said.seek(0)
        return self.said.read().decode(errors="replace")


@contextmanager
def running_pooler() -> Iterator[Pooler]:
    """Start one and stop it, with all its sessions, at the end."""
    assert PROGRAM is not None, MISSING
    found = connection.settings_dict
    owner = _account_of(found["HOST"])
    folder = Path(tempfile.mkdtemp(prefix="pooler-", dir="/tmp"))  # ours alone; sockets want short paths
    config = folder / "pgbouncer.ini"
    values = {"host": found["HOST"], "port": found["PORT"] or 5432, "user": found["USER"], "own_port": PORT}
    quoted = found["PASSWORD"].replace("'", "''")
    values["password"] = f" password='{quoted}'" if quoted else ""
    config.write_text(_SETTINGS.format(**values, folder=folder))
    owner.own(config, 0o600)
    owner.own(folder, 0o700)
    # It refuses to run as root, and the door of the tests' PostgreSQL is open to one account only.
    account: dict[str, Any] = {"user": owner.uid, "group": owner.gid, "extra_groups": []} if owner.is_other else {}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([PROGRAM, str(config)], stdout=said, stderr=said, cwd="/", **account)
        pooler = Pooler(folder, process, said)
        try:
            wait_until(lambda: _is_up(pooler), 10, what="pgbouncer")
            yield pooler
        finally:
            process.terminate()
            process.wait(10)
            shutil.rmtree(folder, ignore_errors=True)


def _is_up(pooler: Pooler) -> bool:
    assert pooler.process.poll() is None, pooler.output()
    return (pooler.folder / f".s.PGSQL.{PORT}").exists()


def _account_of(socket_folder: str) -> Owner:
    """The account that may enter the folder of a socket; ourselves, but never root, if there is none."""
    place = Path(socket_folder)
    if os.geteuid() == 0 and place.is_absolute() and place.is_dir():
        return Owner(place.stat().st_uid, place.stat().st_gid)
    return pick_owner(Path("/nowhere"))
