"""The rules of the schema, read from the live catalog."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models

from tests import distributed

pytestmark = pytest.mark.django_db


def rows(sql: str, *params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def tenant_tables() -> dict[str, int]:
    return {table.name: table.oid for table in distributed.tenant_tables()}


def test_the_tenant_tables_are_found() -> None:
    assert {"jobs", "queues", "job_executions", "job_logs", "jobs_archive", "dead_letter_queue"} <= set(tenant_tables())


def test_the_project_is_never_missing() -> None:
    nullable = rows(
        "select attrelid::regclass::text from pg_attribute where attname = 'project_id' and not attnotnull"
        " and attrelid = any(%s::oid[])",
        list(tenant_tables().values()),
    )

    assert nullable == []


def test_every_tenant_table_has_a_primary_key() -> None:
    keyed = rows(
        "select indrelid from pg_index where indisprimary and indrelid = any(%s::oid[])", list(tenant_tables().values())
    )

    assert {oid for (oid,) in keyed} == set(tenant_tables().values())


def test_the_project_is_part_of_every_primary_key_and_every_unique_constraint() -> None:
    without = rows(
        """
        select i.indexrelid::regclass::text from pg_index i
          join pg_attribute a on a.attrelid = i.indrelid and a.attname = 'project_id'
         where i.indisunique and not a.attnum = any(i.indkey::int2[]) and i.indrelid = any(%s::oid[])
        """,
        list(tenant_tables().values()),
    )

    assert without == []


def test_foreign_keys_between_tenant_tables_stay_inside_of_the_project() -> None:
    oids = list(tenant_tables().values())
    leaving = rows(
        """
        select c.conname from pg_constraint c
          join pg_attribute a on a.attrelid = c.conrelid and a.attname = 'project_id'
         where c.contype = 'f' and c.conrelid = any(%s::oid[]) and c.confrelid = any(%s::oid[])
           and not a.attnum = any(c.conkey)
        """,
        oids, oids,
    )  # fmt: skip

    assert leaving == []


def test_no_foreign_key_between_tenant_tables_sets_null() -> None:
    oids = list(tenant_tables().values())

    assert rows(
        "select conname from pg_constraint where contype = 'f' and confdeltype in ('n', 'd')"
        " and conrelid = any(%s::oid[]) and confrelid = any(%s::oid[])", oids, oids,
    ) == []  # fmt: skip


def test_no_model_of_a_tenant_table_sets_null_when_another_goes() -> None:
    """Django would do it itself, without a word to the database."""
    tenants = {model for model in apps.get_models() if model._meta.db_table in tenant_tables()}
    setting_null = [
        str(field)
        for model in tenants
        for field in model._meta.get_fields()
        if isinstance(field, models.ForeignKey)
        and field.related_model in tenants
        and field.remote_field.on_delete is models.SET_NULL
    ]

    assert len(tenants) > 8
    assert setting_null == []


def test_there_are_no_triggers() -> None:
    assert rows("select tgrelid::regclass::text, tgname from pg_trigger where not tgisinternal") == []


def test_the_table_of_jobs_has_few_indexes_and_none_that_a_heartbeat_would_have_to_rewrite() -> None:
    found = rows("select indexname, indexdef from pg_indexes where tablename = 'jobs'")

    # Those of concurrency keys, circuits and deadlines hold only jobs that have one.
    assert len(found) <= 15
    for name, definition in found:
        keys = definition.split(" USING ")[1].split(" WHERE ")[0]
        for column in ("updated_at", "lease_expires_at", "progress_percent", "attempt_count", "payload"):
            assert column not in keys, name
        assert "USING gin" not in definition


def test_only_three_indexes_of_jobs_cover_every_row() -> None:
    """Each status change rewrites an entry in every index that is not partial."""
    full = rows("select indexname from pg_indexes where tablename = 'jobs' and indexdef not like %s", "% WHERE %")

    assert len(full) <= 3, full


@pytest.mark.parametrize("table", ["jobs", "workers", "leader_terms", "token_buckets"])
def test_hot_tables_are_vacuumed_by_a_number_of_rows_and_leave_room_in_their_pages(table: str) -> None:
    # A partitioned table has none of its own.
    [(options,)] = rows(
        "select distinct reloptions from pg_class where relkind = 'r'"
        " and oid in (select %s::regclass union select relid from pg_partition_tree(%s::regclass))",
        table, table,
    )  # fmt: skip

    settings = dict(option.split("=") for option in options)
    assert float(settings["autovacuum_vacuum_scale_factor"]) == 0
    assert int(settings["autovacuum_vacuum_threshold"]) > 0
    assert int(settings["fillfactor"]) < 100


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("status = 'running'", "jobs_lease_exactly_in_flight"),
        ("lease_token = gen_random_uuid()", "jobs_lease_exactly_in_flight"),
        ("status = 'completed'", "jobs_completed_at_exactly_when_ended"),
        ("completed_at = now()", "jobs_completed_at_exactly_when_ended"),
        ("status = 'retrying'", "jobs_status"),
        ("priority = 10001", "jobs_priority"),
        ("max_attempts_override = 0", "jobs_max_attempts_override"),
    ],
)
def test_the_database_itself_refuses_a_row_that_could_not_be(change: str, constraint: str) -> None:
    from django.db import IntegrityError

    from tests.factories import make_job, make_queue

    job = make_job(make_queue())

    with pytest.raises(IntegrityError, match=constraint):
        rows(f"update jobs set {change} where id = %s returning id", job.pk)


def test_a_job_can_not_be_in_a_queue_of_another_project() -> None:
    from django.db import IntegrityError

    from tests.factories import make_job, make_queue

    job = make_job(make_queue())

    with pytest.raises(IntegrityError, match="jobs_queue_in_project"):
        rows("update jobs set queue_id = %s where id = %s returning id", make_queue().pk, job.pk)
