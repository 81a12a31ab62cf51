"""The months' partitions are there before their months, and rows of the default one move into them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from jobs.services.partitions import MONTHS_AHEAD, PARTITIONED, ensure_months

pytestmark = pytest.mark.django_db


def partitions_of(parent: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass", [parent])
        return {row[0] for row in cursor.fetchall()}


def execute(sql: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("select now()")
        now: datetime = cursor.fetchone()[0]
    return now


def month(ahead: int) -> datetime:
    """The first moment of a month, by the database's clock."""
    first = database_now().astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(ahead):
        first = (first + timedelta(days=32)).replace(day=1)
    return first


def names(parent: str) -> set[str]:
    months = [month(ahead) for ahead in range(MONTHS_AHEAD + 1)]
    return {f"{parent}_{m:%Y_%m}" for m in months} | {f"{parent}_default"}


def log_at(moment: datetime, message: str) -> None:
    execute(
        "insert into job_logs (project_id, execution_id, job_id, ts, level, message)"
        " values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), %s, 'info', %s)",
        moment,
        message,
    )


def where_are(*messages: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "select message, tableoid::regclass::text from job_logs where message = any(%s)", [list(messages)]
        )
        found = dict(cursor.fetchall())
    return [found[message] for message in messages]


@pytest.mark.parametrize("parent", sorted(PARTITIONED))
def test_this_month_and_the_next_ones_are_there_after_migration(parent: str) -> None:
    assert partitions_of(parent) == names(parent)


@pytest.mark.parametrize("parent", sorted(PARTITIONED))
def test_a_month_that_is_missing_is_made_and_the_others_stay(parent: str) -> None:
    execute(f"drop table {parent}_{month(1):%Y_%m}")

    ensure_months()
    ensure_months()

    assert partitions_of(parent) == names(parent)


def test_rows_that_the_default_partition_caught_move_into_their_month() -> None:
    execute(f"drop table job_logs_{month(1):%Y_%m}")
    log_at(month(1), "first moment")
    log_at(month(2) - timedelta(microseconds=1), "last moment")
    log_at(month(0) - timedelta(microseconds=1), "the month before")
    log_at(month(0) + timedelta(days=1_000), "far ahead")
    assert set(where_are("first moment", "last moment")) == {"job_logs_default"}

    ensure_months()

    next_month = f"job_logs_{month(1):%Y_%m}"
    assert where_are("first moment", "last moment") == [next_month, next_month]
    assert where_are("the month before", "far ahead") == ["job_logs_default"] * 2


def test_months_begin_at_midnight_utc_whatever_zone_the_session_has() -> None:
    execute(f"drop table job_logs_{month(1):%Y_%m}")
    execute("set local timezone to 'Pacific/Kiritimati'")

    ensure_months()

    log_at(month(1), "first")
    log_at(month(1) - timedelta(microseconds=1), "before")
    assert where_are("first", "before") == [f"job_logs_{month(1):%Y_%m}", f"job_logs_{month(0):%Y_%m}"]


def test_a_new_partition_has_the_indexes_and_checks_of_its_parent() -> None:
    execute(f"drop table job_logs_{month(1):%Y_%m}")

    ensure_months()

    with connection.cursor() as cursor:
        cursor.execute("select count(*) from pg_indexes where tablename = %s", [f"job_logs_{month(1):%Y_%m}"])
        assert cursor.fetchone() == (2,)
        cursor.execute(
            "select count(*) from pg_constraint where conrelid = %s::regclass and contype = 'c'",
            [f"job_logs_{month(1):%Y_%m}"],
        )
        assert cursor.fetchone() == (1,)
