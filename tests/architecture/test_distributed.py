"""Tenant tables that are partitioned by project: what `make test-distributed` runs the suite on."""

from __future__ import annotations

import re

import pytest

from queues.services import create_queue
from scheduler_project.lib.errors import Conflict
from tests import distributed
from tests.factories import make_job, make_organization, make_project, make_queue

pytestmark = pytest.mark.django_db

COLUMNS = """
select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity::text, a.attgenerated::text,
       pg_get_expr(d.adbin, d.adrelid)
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
 where a.attrelid = to_regclass(%(name)s) and a.attnum > 0 and not a.attisdropped order by 1
"""
CONSTRAINTS = """
select conname, pg_get_constraintdef(oid), convalidated from pg_constraint
 where conrelid = to_regclass(%(name)s) and contype <> 'n' and conparentid = 0 order by 1
"""
INDEXES = """
select replace(replace(pg_get_indexdef(indexrelid), ' ONLY ', ' '), %(name)s, ''), indisunique, indisvalid
  from pg_index where indrelid = to_regclass(%(name)s) order by 1
"""
PARTITIONS = "select inhrelid::regclass::text from pg_inherits where inhparent = to_regclass(%(name)s) order by 1"
STORAGE = """
select distinct array(select unnest(reloptions) order by 1) from pg_class
 where relkind = 'r' and oid in (select to_regclass(%(name)s) union select relid from pg_partition_tree(%(name)s))
"""


HOME = "select tableoid::regclass::text from jobs where id = %(id)s"


def shape_of(table: str) -> dict[str, list[tuple[object, ...]]]:
    parts = {"columns": COLUMNS, "constraints": CONSTRAINTS, "indexes": INDEXES, "storage": STORAGE}
    return {part: [_plain(row) for row in distributed.rows(sql, name=table)] for part, sql in parts.items()}


def _plain(row: tuple[object, ...]) -> tuple[object, ...]:
    """Without brackets and casts: PostgreSQL writes a list of values in another way once it has read its own words."""
    return tuple(
        re.sub(r"[()\[\]]|::(text|character varying)", "", field) if isinstance(field, str) else field for field in row
    )


@pytest.mark.skipif(distributed.IS_DISTRIBUTED, reason="there the tables are spread already")
def test_each_tenant_table_is_spread_and_keeps_all_it_had() -> None:
    names = [table.name for table in distributed.tenant_tables() if table.is_plain]
    before = {name: shape_of(name) for name in names}

    assert distributed.distribute() == names

    assert {"jobs", "job_executions", "queues", "dead_letter_queue", "job_batches", "scheduled_jobs"} <= set(names)
    for name in names:
        partitions = [partition for (partition,) in distributed.rows(PARTITIONS, name=name)]
        assert partitions == [f"{name}_{n}" for n in range(distributed.PARTITIONS)]
        assert shape_of(name) == before[name], name


def test_a_value_that_is_taken_is_refused_in_the_same_words_wherever_its_row_lies() -> None:
    if not distributed.IS_DISTRIBUTED:
        distributed.distribute()
    organization, homes = make_organization(), set()

    for _ in range(5 * distributed.PARTITIONS):
        queue = make_queue(make_project(organization), name="mail")
        with pytest.raises(Conflict, match="name: "):
            create_queue(queue.project, name="mail")
        homes |= set(distributed.rows(HOME, id=make_job(queue).pk))

    assert len(homes) > 1
    assert {home for (home,) in homes} <= {f"jobs_{n}" for n in range(distributed.PARTITIONS)}
