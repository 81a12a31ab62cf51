"""Migrations match the models, and go back as well as forth."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from tests.sizes import long

SHAPE = """
select 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' '
       || coalesce(column_default, '')
  from information_schema.columns where table_schema = 'public'
union all
select 'index ' || indexdef from pg_indexes where schemaname = 'public'
union all
select 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
  from pg_constraint where connamespace = 'public'::regnamespace
union all
select 'function ' || proname from pg_proc where pronamespace = 'public'::regnamespace
order by 1
"""


@pytest.mark.django_db
def test_the_models_need_no_migration_that_is_not_there() -> None:
    call_command("makemigrations", check=True, dry_run=True, stdout=StringIO())


@pytest.fixture
def scratch(transactional_db: None) -> Iterator[None]:
    """A database of its own for the connection of this test, empty."""
    name = f"{connection.settings_dict['NAME']}_scratch"
    before = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f'drop database if exists "{name}"')
        cursor.execute(f'create database "{name}"')
    connection.close()
    connection.settings_dict["NAME"] = name
    yield
    connection.close()
    connection.settings_dict["NAME"] = before
    with connection.cursor() as cursor:
        cursor.execute(f'drop database "{name}"')


def migrate(*target: str) -> None:
    call_command("migrate", *target, verbosity=0, interactive=False)


def shape() -> list[str]:
    """Everything of the schema that can be named."""
    with connection.cursor() as cursor:
        cursor.execute(SHAPE)
        return [row[0] for row in cursor.fetchall()]


@long
def test_migrations_go_back_to_nothing_and_forth_to_the_same_schema(scratch: None) -> None:
    migrate()
    first = shape()
    for app in ("dlq", "jobs", "queues", "orgs"):
        migrate(app, "zero")
    left = [
        line for line in shape() if any(f" {table}" in line for table in ("jobs", "queues", "job_logs", "projects"))
    ]
    assert left == []

    migrate()

    assert shape() == first
