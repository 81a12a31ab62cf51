"""A scratch database beside the user's, with the product's tables, and processes that work in it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import psycopg
from django.conf import settings
from psycopg import sql

PREFIX = "punctual_bench_"


@dataclass(frozen=True, slots=True)
class Scratch:
    """The database of one benchmark."""

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
            timeout=300,
        )
        return done.stdout

    def _env(self, more: dict[str, str]) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("APP_") or k == "APP_HANDLER_MODULES"}
        return {**kept, "APP_DATABASE_URL": self.url, "APP_METRICS_PORT": "0", "APP_LOG_LEVEL": "error", **more}


@contextlib.contextmanager
def scratch_database() -> Iterator[Scratch]:
    """Make the database, migrate it, and drop it whatever happens. The user's own is never touched."""
    name = f"{PREFIX}{os.getpid()}"
    with psycopg.connect(_url(settings.DATABASE_DIRECT["NAME"]), autocommit=True) as admin:
        admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            made = Scratch(name, _url(name))
            if made.start("migrate", "--verbosity", "0").wait():
                raise RuntimeError("the scratch database could not be migrated")
            yield made
        finally:
            admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _url(name: str) -> str:
    direct = settings.DATABASE_DIRECT
    password = f":{quote(direct['PASSWORD'], safe='')}" if direct.get("PASSWORD") else ""
    query = {"host": direct.get("HOST"), "port": direct.get("PORT")} | {
        k: v for k, v in direct.get("OPTIONS", {}).items() if isinstance(v, str | int) and k != "server_side_binding"
    }
    text = "&".join(f"{k}={quote(str(v), safe='')}" for k, v in query.items() if v)
    return f"postgresql://{quote(direct.get('USER', ''), safe='')}{password}@/{name}?{text}"
