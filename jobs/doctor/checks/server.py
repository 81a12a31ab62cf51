"""Settings of PostgreSQL that the engine rests on."""

from __future__ import annotations

from jobs.doctor import catalog
from jobs.doctor.finding import Findings, problem, warning

MOST_CONNECTIONS_USED = 0.8
SHORTEST_STATEMENT_MS = 5_000


def look() -> Findings:
    """Durability, isolation, time-outs, the clean-up, and room for connections."""
    found = catalog.settings_of_session(
        "fsync", "full_page_writes", "synchronous_commit", "default_transaction_isolation", "statement_timeout",
        "idle_session_timeout", "transaction_timeout", "autovacuum", "track_counts", "default_transaction_read_only",
    )  # fmt: skip
    yield from _durability(found)
    yield from _sessions(found)
    if found["autovacuum"] == "off" or found["track_counts"] == "off":
        yield problem("autovacuum is off: tables grow without end", "set autovacuum = on and track_counts = on")
    used, most = catalog.connections()
    if used > most * MOST_CONNECTIONS_USED:
        yield warning(
            f"{used} of {most} connections are in use",
            "fewer processes, a smaller APP_DATABASE_MAX_CONNECTIONS, a pooler, or a larger max_connections",
        )


def _durability(found: dict[str, str]) -> Findings:
    for name in ("fsync", "full_page_writes"):
        if found[name] == "off":
            yield problem(f"{name} is off: a crash of the host may lose or ruin all jobs", f"set {name} = on")
    if found["synchronous_commit"] == "off":
        yield warning(
            "synchronous_commit is off: a crash may undo the last moments, and jobs that were acknowledged",
            "set synchronous_commit = on unless you chose that",
        )


def _sessions(found: dict[str, str]) -> Findings:
    if (isolation := found["default_transaction_isolation"]) != "read committed":
        yield problem(
            f"default_transaction_isolation is {isolation}: claims and limits rest on read committed",
            "alter role … set default_transaction_isolation = 'read committed'",
        )
    if found["default_transaction_read_only"] == "on":
        yield problem("sessions begin read-only", "alter role … set default_transaction_read_only = off")
    if 0 < int(found["statement_timeout"]) < SHORTEST_STATEMENT_MS:
        yield problem(
            f"statement_timeout is {found['statement_timeout']} ms: upkeep and long lists are cut off",
            f"alter role … set statement_timeout = 0, or {SHORTEST_STATEMENT_MS} and more",
        )
    for name in ("idle_session_timeout", "transaction_timeout"):
        if int(found.get(name, "0")) > 0:
            yield problem(
                f"{name} is {found[name]} ms: the sessions of leader and listeners are ended while they wait",
                f"alter role … set {name} = 0",
            )
