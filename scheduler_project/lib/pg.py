"""PostgreSQL beyond one statement: addresses, sessions that go direct, LISTEN on a connection of its own."""

from __future__ import annotations

from typing import Any

import psycopg
from django.conf import settings
from django.db import connection, connections
from psycopg.conninfo import conninfo_to_dict

# A vanished peer is noticed within about 9 s: 3 s of silence, then two unanswered probes 2 s apart.
KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 8_000,
}
CONNECT_TIMEOUT_S = 5
SERVER_KEEPALIVE = (
    "-c tcp_keepalives_idle=3 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=2 -c tcp_user_timeout=8000"
)


def settings_from_url(url: str) -> dict[str, Any]:
    """Django's database settings of a postgresql:// address.

    Of several hosts the one that takes writes is used, unless the address says otherwise by target_session_attrs.

    Raises:
        ValueError: not an address of a PostgreSQL database.
    """
    try:
        parts = dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError as error:
        raise ValueError(str(error)) from None
    if not url.startswith(("postgresql://", "postgres://")) or not parts.get("dbname"):
        raise ValueError("not a postgresql:// address with a database name")
    hosts = str(parts.get("host") or "").split(",")
    _check_ports(str(parts.get("port") or "").split(","), len(hosts))
    if len(hosts) > 1:
        parts.setdefault("target_session_attrs", "read-write")
    keys = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    found = {key: str(parts.pop(part, "") or "") for key, part in keys.items()}
    return {"ENGINE": "scheduler_project.lib.postgres", **found, "OPTIONS": parts}


def _check_ports(ports: list[str], hosts: int) -> None:
    """libpq finds out about a wrong port only when it connects. An empty one is 5432; one is for all hosts."""
    if not all(p == "" or (p.isascii() and p.isdigit() and 0 < int(p[:6]) < 65_536) for p in ports):
        raise ValueError("not a port number")
    if len(ports) not in (1, hosts):
        raise ValueError("not one port for each host")


def ordinary_options(found: dict[str, Any]) -> dict[str, Any]:
    """Options of the sessions that Django opens: a host that vanishes is noticed, and the next one is tried.

    Args:
        found: of ``settings_from_url``; what the address says wins.
    """
    # The statements of the engine go to the server as text with their values (several in one round trip).
    return {**KEEPALIVE, "connect_timeout": CONNECT_TIMEOUT_S, **found["OPTIONS"], "server_side_binding": False}


def use_database(url: str) -> None:
    """Let this process work in another database than the one of its settings, from its next session on.

    Raises:
        ValueError: not an address of a PostgreSQL database.
    """
    found = settings_from_url(url)
    connection.close()
    settings.DATABASE = settings.DATABASE_DIRECT = found
    # Threads that have no connection yet make theirs from these.
    connections.settings["default"].update({**found, "OPTIONS": ordinary_options(found)})


def direct_parameters() -> dict[str, Any]:
    """psycopg.connect arguments for a session of our own, past any pooler: LISTEN, leadership, heartbeats."""
    direct = settings.DATABASE_DIRECT
    named = {
        "dbname": _direct_name(),
        "user": direct.get("USER"),
        "password": direct.get("PASSWORD"),
        "host": direct.get("HOST"),
        "port": direct.get("PORT"),
    }
    extra = {k: v for k, v in direct.get("OPTIONS", {}).items() if k != "server_side_binding"}
    return {**KEEPALIVE, "connect_timeout": CONNECT_TIMEOUT_S, **extra, **{k: v for k, v in named.items() if v}}


def connect_direct(name: str) -> psycopg.Connection[Any]:
    """A direct session in autocommit, shown as ``name`` in pg_stat_activity."""
    return psycopg.connect(**direct_parameters(), autocommit=True, application_name=name)


async def connect_direct_async(name: str) -> psycopg.AsyncConnection[Any]:
    """The same for an event loop."""
    return await psycopg.AsyncConnection.connect(**direct_parameters(), autocommit=True, application_name=name)


def use_direct_session(name: str, *, lock_timeout_ms: int | None = 2_000) -> None:
    """Make this process's Django connection a direct one that outlives every tick (leader, migrations).

    Args:
        name: shown in pg_stat_activity.
        lock_timeout_ms: whoever holds a row or a table for long must not hold up everything that this session does;
            None leaves it to the server's settings.
    """
    direct, name_of_database = settings.DATABASE_DIRECT, _direct_name()
    connection.close()
    options = {**direct.get("OPTIONS", {}), **KEEPALIVE, "connect_timeout": CONNECT_TIMEOUT_S, "application_name": name}
    limit = "" if lock_timeout_ms is None else f"-c lock_timeout={lock_timeout_ms}"
    options["options"] = " ".join(filter(None, [options.get("options"), SERVER_KEEPALIVE, limit]))
    options["server_side_binding"] = False
    for key in ("USER", "PASSWORD", "HOST", "PORT"):
        connection.settings_dict[key] = direct.get(key, "")
    connection.settings_dict["NAME"] = name_of_database
    connection.settings_dict["OPTIONS"] = options
    connection.settings_dict["CONN_MAX_AGE"] = None


def _direct_name() -> str:
    """The database's name for direct sessions: a pooler may know it by another one.

    It is read from the open configuration, not from the settings: tests run in a database of another name.
    """
    direct: str = settings.DATABASE_DIRECT["NAME"]
    return connection.settings_dict["NAME"] if direct == settings.DATABASE["NAME"] else direct
