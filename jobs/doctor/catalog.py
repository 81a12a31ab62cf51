"""What PostgreSQL knows of itself. Statements on its catalogue only, none of them on our tables."""

from __future__ import annotations

from typing import Any

from scheduler_project.lib.sql import run
from scheduler_project.lib.statements import Statement

_SETTINGS = Statement("doctor_settings", "select name, setting from pg_settings where name = any (%(names)s::text[])")
_TABLES = Statement(
    "doctor_tables",
    """select c.relname, coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0),
              coalesce(array_to_string(c.reloptions, ','), '') like '%%autovacuum_enabled=false%%'
         from pg_class c
         left join pg_stat_user_tables s on s.relid = c.oid
        where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
        order by 1""",
)
_AGE = Statement(
    "doctor_age",
    """select age(datfrozenxid), current_setting('autovacuum_freeze_max_age')::bigint
         from pg_database where datname = current_database()""",
)
_SESSIONS = Statement(
    "doctor_sessions",
    """select pid, coalesce(usename, ''), coalesce(application_name, ''), coalesce(state, ''),
              extract(epoch from clock_timestamp() - xact_start)::float8,
              age(coalesce(backend_xmin, backend_xid))::bigint, left(coalesce(query, ''), 80)
         from pg_stat_activity
        where xact_start is not null and pid <> pg_backend_pid() and backend_type = 'client backend'
          and datname = current_database() and coalesce(backend_xmin, backend_xid) is not null
          and clock_timestamp() - xact_start > make_interval(secs => %(older_s)s)
        order by xact_start""",
)
_PREPARED = Statement(
    "doctor_prepared",
    """select gid, owner::text, extract(epoch from clock_timestamp() - prepared)::float8
         from pg_prepared_xacts where database = current_database()
          and clock_timestamp() - prepared > make_interval(secs => %(older_s)s)""",
)
_SLOTS = Statement(
    "doctor_slots",
    """select slot_name::text, active, age(coalesce(xmin, catalog_xmin))::bigint
         from pg_replication_slots where coalesce(xmin, catalog_xmin) is not null""",
)
_STANDBYS = Statement(
    "doctor_standbys",
    """select pid, coalesce(application_name, ''), age(backend_xmin)::bigint
         from pg_stat_replication where backend_xmin is not null""",
)
_CONNECTIONS = Statement(
    "doctor_connections",
    """select (select count(*) from pg_stat_activity where backend_type = 'client backend'),
              current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int""",
)
_RELATIONS = Statement(
    "doctor_relations",
    """select c.relname from pg_class c where c.relnamespace = current_schema()::regnamespace
        union select conname from pg_constraint where connamespace = current_schema()::regnamespace""",
)
_INVALID = Statement(
    "doctor_invalid",
    """select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
        where not i.indisvalid and c.relnamespace = current_schema()::regnamespace""",
)
_PARTITIONS = Statement(
    "doctor_partitions",
    """select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = to_regclass(%(parent)s)""",
)
_LOCK = Statement(
    "doctor_lock",
    """select l.pid from pg_locks l
        where l.locktype = 'advisory' and l.granted and l.objsubid = 1
          and l.database = (select oid from pg_database where datname = current_database())
          and (l.classid::bigint << 32 | l.objid::bigint) = %(lock_id)s""",
)
_IDENTITY = Statement(
    "doctor_identity",
    """select current_setting('server_version_num')::int, current_setting('server_version'),
              pg_is_in_recovery(), current_setting('server_encoding')""",
)


def identity() -> tuple[int, str, bool, str]:
    """The server's version as number and text, whether it is a standby, and the encoding of the database."""
    number, text, is_standby, encoding = run(_IDENTITY, {})[0]
    return int(number), str(text), bool(is_standby), str(encoding)


def settings_of_session(*names: str) -> dict[str, str]:
    """Settings as they hold for our sessions, in the server's own units."""
    return {str(name): str(value) for name, value in run(_SETTINGS, {"names": list(names)})}


def tables() -> list[tuple[str, int, int, bool]]:
    """Each table with its live and dead rows, as far as the server counted, and whether its autovacuum is off."""
    return [(str(name), int(live), int(dead), bool(is_off)) for name, live, dead, is_off in run(_TABLES, {})]


def transaction_age() -> tuple[int, int]:
    """How many transactions ago the oldest row was frozen, and when the server freezes by force."""
    age, limit = run(_AGE, {})[0]
    return int(age), int(limit)


def old_transactions(older_s: float) -> list[tuple[Any, ...]]:
    """Sessions in a transaction that keeps old rows: pid, user, application, state, seconds, age, query."""
    return run(_SESSIONS, {"older_s": older_s})


def prepared_transactions(older_s: float) -> list[tuple[Any, ...]]:
    """Prepared transactions that nobody ended: name, owner, seconds."""
    return run(_PREPARED, {"older_s": older_s})


def holding_slots() -> list[tuple[Any, ...]]:
    """Replication slots that keep old rows: name, active, age."""
    return run(_SLOTS, {})


def holding_standbys() -> list[tuple[Any, ...]]:
    """Standbys whose queries keep old rows: pid, application, age."""
    return run(_STANDBYS, {})


def connections() -> tuple[int, int]:
    """Sessions in use, and how many there may be."""
    used, most = run(_CONNECTIONS, {})[0]
    return int(used), int(most)


def relations() -> set[str]:
    """Names of all tables, indexes and constraints."""
    return {str(name) for (name,) in run(_RELATIONS, {})}


def invalid_indexes() -> list[str]:
    """Indexes whose making failed."""
    return [str(name) for (name,) in run(_INVALID, {})]


def partitions_of(parent: str) -> set[str]:
    """The partitions that are attached to a table."""
    return {str(name) for (name,) in run(_PARTITIONS, {"parent": parent})}


def holder_of_lock(lock_id: int) -> int | None:
    """The session that holds an advisory lock."""
    found = run(_LOCK, {"lock_id": lock_id})
    return int(found[0][0]) if found else None
