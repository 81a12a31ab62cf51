"""The tenant tables as one that spreads projects over many machines would have them: hash-partitioned by project.

``make test-distributed`` (APP_TEST_DISTRIBUTED=1) runs the suite on it. Each table keeps its columns, constraints,
indexes, foreign keys and storage settings, and their names; what a partition has is named as its parent's with a number
behind, as Citus names what its shards have (``jobs_3``, ``jobs_pkey_3``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, transaction

IS_DISTRIBUTED = os.environ.get("APP_TEST_DISTRIBUTED") == "1"
#: A statement that names no project has a part for each partition, and reads those that are empty whole.
plain_plans = pytest.mark.skipif(IS_DISTRIBUTED, reason="looks at plans, which have a part for each partition here")
#: More than two, so that rows of two projects mostly lie apart.
PARTITIONS = 4
#: Tables that name a project and are not a tenant's own, each with the reason.
NOT_OF_A_TENANT = {
    "api_keys": "a key is found by its hash before its project is known",
    "audit_log": "belongs to the organization; not every deed has a project",
    "workers": "serve all projects; only a remote one belongs to one",
}
#: Those of logs and of the archive are partitioned already, by month, and stay so: dropping a month needs it.
WITH_PROJECT = """
select t.oid, t.relname, t.relkind::text, t.relispartition, coalesce(t.reloptions, '{}') from pg_class t
  join pg_attribute a on a.attrelid = t.oid and a.attname = 'project_id' and not a.attisdropped
 where t.relkind in ('r', 'p') and t.relnamespace = 'public'::regnamespace
 order by t.relname
"""
FOREIGN_KEYS = """
select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
 where contype = 'f' and conparentid = 0 and (conrelid = any(%(oids)s::oid[]) or confrelid = any(%(oids)s::oid[]))
"""
KEYS = """
select conname, pg_get_constraintdef(oid) from pg_constraint
 where contype in ('p', 'u') and conrelid = %(oid)s order by conname
"""
INDEXES = """
select pg_get_indexdef(i.indexrelid) from pg_index i
 where i.indrelid = %(oid)s and not exists (select from pg_constraint c where c.conindid = i.indexrelid and c.contype in ('p', 'u'))
"""  # noqa: E501


@dataclass(frozen=True)
class Table:
    """A tenant table of the catalogue."""

    oid: int
    name: str
    is_plain: bool
    options: Sequence[str]


def tenant_tables() -> list[Table]:
    """All of them, with the partitions of those that are partitioned."""
    found = rows(WITH_PROJECT)
    shards = {f"{name}_{n}" for name in NOT_OF_A_TENANT for n in range(PARTITIONS)}
    return [
        Table(oid, name, kind == "r" and not is_partition, options)
        for oid, name, kind, is_partition, options in found
        if name not in NOT_OF_A_TENANT and name not in shards
    ]


def distribute() -> list[str]:
    """Rebuild every tenant table that is not partitioned yet, in one transaction.

    Returns:
        Their names.
    """
    tables = [table for table in tenant_tables() if table.is_plain]
    with transaction.atomic():
        keys = rows(FOREIGN_KEYS, oids=[table.oid for table in tables])
        for holder, name, _ in keys:
            run(f"alter table {holder} drop constraint {name}")
        for table in tables:
            _rebuild(table)
        for holder, name, definition in keys:
            run(f"alter table {holder} add constraint {name} {definition}")
    return [table.name for table in tables]


def _rebuild(table: Table) -> None:
    name, was = table.name, f"{table.name}_was"
    assert rows(f"select from {name} limit 1") == [], f"{name} is rebuilt without its rows, and has some"
    keys, indexes = rows(KEYS, oid=table.oid), [definition for (definition,) in rows(INDEXES, oid=table.oid)]
    for key, _ in keys:
        run(f"alter table {name} drop constraint {key}")
    for definition in indexes:
        run(f"drop index {_named(definition)}")
    run(f"alter table {name} rename to {was}")
    run(
        f"create table {name} (like {was} including defaults including constraints including identity"
        f" including storage including generated) partition by hash (project_id)"
    )
    storage = f" with ({', '.join(table.options)})" if table.options else ""
    for n in range(PARTITIONS):
        run(
            f"create table {name}_{n} partition of {name}"
            f" for values with (modulus {PARTITIONS}, remainder {n}){storage}"
        )
        # Those of the partitions first: what the parent gets next takes them as its own and invents no names.
        for key, definition in keys:
            run(f"alter table {name}_{n} add constraint {key}_{n} {definition}")
        for definition in indexes:
            run(_of_partition(definition, name, n))
    for key, definition in keys:
        run(f"alter table {name} add constraint {key} {definition}")
    for definition in indexes:
        run(definition)
    run(f"drop table {was}")


def _named(definition: str) -> str:
    found = re.match(r"CREATE (?:UNIQUE )?INDEX (\S+) ON ", definition)
    assert found, definition
    return found[1]


def _of_partition(definition: str, table: str, n: int) -> str:
    index = _named(definition)
    return definition.replace(f" INDEX {index} ON public.{table} ", f" INDEX {index}_{n} ON public.{table}_{n} ", 1)


def rows(sql: str, **params: Any) -> list[tuple[Any, ...]]:
    """The answer to a question about the catalogue."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def run(sql: str) -> None:
    """Change the schema."""
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("%", "%%"), {})
