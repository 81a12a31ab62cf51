"""What was done in a range, bar by bar: the sums of its minutes, added up by the database."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from jobs.histogram import BUCKETS, percentile_ms
from jobs.models import WHOLE_PROJECT, JobStat
from jobs.selectors.dashboard import history
from scheduler_project.lib.sql import database_now
from tests.factories import make_project, make_queue

pytestmark = pytest.mark.django_db

COUNTS = ("created", "started", "completed", "failed", "retried", "dead", "cancelled", "expired")


def buckets(**filled: int) -> list[int]:
    return [filled.get(f"b{i}", 0) for i in range(BUCKETS)]


def keep(queue, at: datetime, job_type: str = "mail", waits=(), runs=(), grain="minute", **counts: int) -> None:
    JobStat.objects.create(
        project_id=queue.project_id,
        queue_id=WHOLE_PROJECT if job_type == "" else queue.pk,
        job_type=job_type,
        grain=grain,
        at=at,
        wait_ms=0,
        run_ms=0,
        wait_histogram=list(waits) or buckets(),
        run_histogram=list(runs) or buckets(),
        **{name: counts.get(name, 0) for name in COUNTS},
    )


@pytest.fixture
def now() -> datetime:
    return database_now()


@pytest.fixture
def minute(now):
    """The minute so many minutes ago."""
    return lambda ago: now.replace(second=0, microsecond=0) - timedelta(minutes=ago)


def test_a_bar_adds_up_its_minutes_and_the_types_of_a_queue(queue, now, minute):
    keep(queue, minute(0), created=5, started=4, completed=2, failed=1, expired=1, cancelled=1, dead=1, retried=9)
    keep(queue, minute(1), created=1)
    keep(queue, minute(1), "sms", created=2, completed=7)
    keep(queue, minute(60), "old", created=99)

    hour = history(queue.project_id, now, "1h", queue.pk)
    day = history(queue.project_id, now, "24h", queue.pk)

    assert (len(hour.bars), hour.bars[-1], hour.bars[0]) == (60, minute(0), minute(59))
    assert (hour.created[-2:], sum(hour.created)) == ([3, 5], 8)
    assert (hour.started[-1], hour.completed[-2:], hour.failed[-1]) == (4, [7, 2], 2)
    assert (hour.cancelled[-1], hour.dead[-1]) == (1, 1)
    assert hour.by_type == {"mail": {"completed": 2, "failed": 2}, "sms": {"completed": 7, "failed": 0}}
    assert (len(day.bars), sum(day.created)) == (96, 107)
    assert day.bars[-1] == minute(0) + timedelta(minutes=1) - timedelta(minutes=15)


def test_percentiles_are_those_of_all_minutes_of_a_bar_together(queue, now, minute):
    keep(queue, minute(0), waits=buckets(b0=3, b47=1), runs=buckets(b10=2))
    keep(queue, minute(0), "sms", waits=buckets(b0=1, b4=5))
    keep(queue, minute(3), runs=buckets(b20=1))
    together = buckets(b0=4, b4=5, b47=1)

    found = history(queue.project_id, now, "15m", queue.pk)

    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert found.wait[name][-1] == (percentile_ms(together, share) or 0.0) / 1000
        assert found.wait[name][:-1] == [None] * 14
    assert [value is not None for value in found.run["p50"][-4:]] == [True, False, False, True]


def test_percentiles_of_a_day_are_those_of_the_hour_in_which_a_bar_begins(queue, now, minute):
    keep(queue, minute(0), created=1, waits=buckets(b47=1))
    hour = minute(90).replace(minute=0)
    keep(queue, hour, grain="hour", waits=buckets(b4=5))
    keep(queue, hour, "sms", grain="hour", runs=buckets(b9=1))
    for ago in range(24 * 60):
        keep(queue, minute(ago), "some", created=1)

    found = history(queue.project_id, now, "24h", queue.pk)

    inside = [hour <= bar < hour + timedelta(hours=1) for bar in found.bars]
    assert sum(inside) == 4
    assert [value is not None for value in found.wait["p50"]] == inside
    assert [value is not None for value in found.run["p50"]] == inside
    assert found.wait["p50"][inside.index(True)] == (percentile_ms(buckets(b4=5), 0.5) or 0.0) / 1000
    assert found.is_hourly
    assert not history(queue.project_id, now, "6h", queue.pk).is_hourly


def test_of_a_whole_project_its_own_sums_are_read(queue, project, now, minute):
    keep(queue, minute(0), created=5)
    keep(queue, minute(0), "", created=8, completed=1)
    keep(make_queue(make_project()), minute(0), "", created=100)

    found = history(project.pk, now, "1h")

    assert (sum(found.created), sum(found.completed)) == (8, 1)


def test_nothing_done_is_a_row_of_noughts_and_gaps(queue, now):
    found = history(queue.project_id, now, "6h", queue.pk)

    assert (len(found.bars), found.created, found.by_type) == (72, [0] * 72, {})
    assert found.wait["p95"] == [None] * 72


def test_it_is_one_statement(queue, now, minute, django_assert_num_queries):
    keep(queue, minute(0), created=5)
    with django_assert_num_queries(1):
        history(queue.project_id, now, "24h", queue.pk)
