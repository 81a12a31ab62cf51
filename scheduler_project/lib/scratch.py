"""A scratch database beside the user's, with the product's tables, and processes that work in it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import psycopg
from django.conf import settings
from psycopg import sql

RUN_LIMIT_S = 1_800


@dataclass(frozen=True, slots=True)
class Scratch:
    """One scratch database."""

    name: str
    url: str

    def connect(self) -> psycopg.Connection[Any]:
        """A session in autocommit."""
        return psycopg.connect(self.url, autocommit=True)

    def value(self, statement: str) -> Any:
        """The first value of a query."""
        with self.connect() as session:
            row = session.execute(statement.encode()).fetchone()
            return row[0] if row else None

    def start(self, *args: str, program: Sequence[str] = (), **env: str) -> subprocess.Popen[bytes]:
        """A process in this database: manage.py with ``args``, or another ``program``."""
        return subprocess.Popen(
            [*(program or [sys.executable, "manage.py"]), *args],
            cwd=settings.BASE_DIR,
            env=self._env(env),
            stdout=subprocess.DEVNULL,
        )

    def run(self, program: Sequence[str], text: str, **env: str) -> str:
        """Let a program read ``text`` and end in this database; what it printed."""
        done = subprocess.run(
            program,
            input=text,
            cwd=settings.BASE_DIR,
            env=self._env(env),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=RUN_LIMIT_S,
        )
        return done.stdout

    def _env(self, more: dict[str, str]) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("APP_") or k == "APP_HANDLER_MODULES"}
        return {**kept, "APP_DATABASE_URL": self.url, "APP_METRICS_PORT": "0", "APP_LOG_LEVEL": "error", **more}


@contextlib.contextmanager
def scratch_database(purpose: str) -> Iterator[Scratch]:
    """Make the database, migrate it, and drop it whatever happens. The user's own is never touched.

    What a run left behind that was killed is dropped too, if it was on this machine.
    """
    prefix = f"punctual_{purpose}_{zlib.crc32(socket.gethostname().encode()):08x}_"
    with _admin() as admin:
        _drop_left_behind(admin, prefix)
        with _database(admin, f"{prefix}{os.getpid()}") as made:
            if made.start("migrate", "--verbosity", "0").wait():
                raise RuntimeError("the scratch database could not be migrated")
            yield made


@contextlib.contextmanager
def copy_of(scratch: Scratch) -> Iterator[Scratch]:
    """A database of the same content, dropped at the end: quicker than to migrate another; no session may be in it."""
    with _admin() as admin, _database(admin, f"{scratch.name}_copy", template=scratch.name) as made:
        yield made


@contextlib.contextmanager
def empty_beside(scratch: Scratch, purpose: str) -> Iterator[Scratch]:
    """A database without tables, for somebody else's; dropped at the end."""
    with _admin() as admin, _database(admin, f"{scratch.name}_{purpose}") as made:
        yield made


@contextlib.contextmanager
def _database(admin: psycopg.Connection[Any], name: str, template: str = "") -> Iterator[Scratch]:
    drop = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
    admin.execute(drop)
    of = sql.SQL(" template {}").format(sql.Identifier(template)) if template else sql.SQL("")
    admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)) + of)
    try:
        yield Scratch(name, _url(name))
    finally:
        admin.execute(drop)


def _admin() -> psycopg.Connection[Any]:
    return psycopg.connect(_url(settings.DATABASE_DIRECT["NAME"]), autocommit=True)


def _drop_left_behind(admin: psycopg.Connection[Any], prefix: str) -> None:
    rows = admin.execute("select datname from pg_database where starts_with(datname, %s)", [prefix]).fetchall()
    for (name,) in rows:
        pid = name.removeprefix(prefix).partition("_")[0]
        if not (pid.isdigit() and _is_alive(int(pid))):
            admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _url(name: str) -> str:
    direct = settings.DATABASE_DIRECT
    password = f":{quote(direct['PASSWORD'], safe='')}" if direct.get("PASSWORD") else ""
    query = {"host": direct.get("HOST"), "port": direct.get("PORT")} | {
        k: v for k, v in direct.get("OPTIONS", {}).items() if isinstance(v, str | int) and k != "server_side_binding"
    }
    text = "&".join(f"{k}={quote(str(v), safe='')}" for k, v in query.items() if v)
    return f"postgresql://{quote(direct.get('USER', ''), safe='')}{password}@/{name}?{text}"
