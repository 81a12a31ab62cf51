"""The statistics say what the rows say."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Count

from dlq.models import DeadLetter
from jobs.decisions import Cancelled, Discarded, Failed, Succeeded
from jobs.lifecycle.cancel import cancel_jobs
from jobs.lifecycle.reap import reap_expired
from jobs.models import WHOLE_PROJECT, Job, JobExecution, JobStat, JobStatDelta, QueueStat
from jobs.selectors.queue_stats import queues_now
from jobs.selectors.stats import Range, percentiles, series, snapshot, top_job_types
from jobs.services.statistics import fold, fold_all, forget_old, look_at_all_queues, look_at_queues
from scheduler_project.lib.sql import database_now
from tests.factories import claim_one, end, job_in, lapse, make_job, make_jobs, make_project, make_queue

pytestmark = pytest.mark.django_db


def recount() -> dict[str, int]:
    ends = dict(JobExecution.objects.values_list("status").annotate(n=Count("*")).order_by())
    return {
        "created": Job.objects.count(),
        "started": sum(ends.values()),
        "completed": ends.get("completed", 0),
        "failed": ends.get("failed", 0),
        "expired": ends.get("lost", 0),
        "dead": DeadLetter.objects.count(),
        "cancelled": Job.objects.filter(status="cancelled").count(),
    }


def counted(grain: str = "all", *, is_whole: bool = False) -> dict[str, int]:
    rows = [row for row in JobStat.objects.filter(grain=grain) if (row.queue_id == WHOLE_PROJECT) is is_whole]
    return {name: sum(getattr(row, name) for row in rows) for name in recount()}


def a_bit_of_everything(queue) -> None:
    for verdict in (Succeeded(), Failed("no"), Discarded("never"), Cancelled("stop")):
        make_job(queue)
        end(claim_one(queue), verdict, ran_ms=3.0)
    make_job(queue, max_attempts=1)
    end(claim_one(queue), Failed("for good"))
    make_job(queue)
    lapse(claim_one(queue))
    reap_expired(limit=10)
    cancel_jobs([make_job(queue, delay_s=60).pk], reason="not wanted")


def test_every_grain_says_what_a_recount_says(queue):
    a_bit_of_everything(queue)

    fold_all()

    for grain in ("minute", "hour", "day", "all"):
        assert counted(grain) == recount(), grain
    assert recount()["failed"] >= 2
    assert recount()["expired"] == 1
    assert not JobStatDelta.objects.exists()


def test_folding_in_small_steps_loses_nothing(queue, monkeypatch):
    monkeypatch.setattr("jobs.services.statistics.AT_ONCE", 2)
    a_bit_of_everything(queue)

    fold_all()

    assert counted() == recount()
    assert fold() == 0


def test_increments_of_two_minutes_are_kept_apart(queue):
    make_job(queue)
    make_job(queue)
    JobStatDelta.objects.filter(pk=JobStatDelta.objects.order_by("pk").values_list("pk", flat=True)[0]).update(
        at=database_now() - timedelta(minutes=3)
    )

    fold_all()

    minutes = JobStat.objects.filter(grain="minute").exclude(queue_id=WHOLE_PROJECT)
    assert [row.created for row in minutes] == [1, 1]
    assert counted() == recount()


def _submit_and_fail(queue) -> None:
    make_job(queue)
    raise ZeroDivisionError


def test_a_submission_that_is_rolled_back_counts_nothing(queue):
    from django.db import transaction

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        _submit_and_fail(queue)

    assert not JobStatDelta.objects.exists()


def test_times_are_kept_as_histograms(queue):
    for ran_ms in (0.5, 3.0, 100.0, 100.0):
        make_job(queue)
        end(claim_one(queue), Succeeded(), ran_ms=ran_ms)
    fold_all()

    now = database_now()
    points = series(queue.project_id, Range(now - timedelta(minutes=5), now + timedelta(minutes=1)))
    waits, runs = percentiles(points)

    assert sum(sum(point.runs) for point in points) == sum(sum(point.waits) for point in points) == 4
    assert runs.p50 is not None
    assert runs.p99 is not None
    assert 64 < runs.p99 <= 128
    assert 2 < runs.p50 <= 4
    assert waits.p50 is not None
    [row] = JobStat.objects.filter(grain="all").exclude(queue_id=WHOLE_PROJECT)
    assert row.run_ms == pytest.approx(203.5)


def test_series_are_the_projects_own(queue):
    other = make_queue(make_project())
    make_job(queue, job_type="noop")
    make_job(queue, job_type="sleep")
    make_job(other)
    fold_all()
    now = database_now()
    span = Range(now - timedelta(hours=2), now + timedelta(minutes=1), "hour")

    assert sum(point.created for point in series(queue.project_id, span)) == 2
    assert sum(point.created for point in series(queue.project_id, span, job_type="sleep")) == 1
    assert series(queue.project_id, span, queue_id=other.pk) == []
    assert {name for name, _ in top_job_types(queue.project_id, span)} == {"noop", "sleep"}


def test_the_snapshot_counts_what_is_there(queue, project):
    make_jobs(queue, 3)
    make_job(queue, delay_s=60)
    job_in("dead_letter", make_queue(project))
    claim_one(queue)
    look_at_all_queues()

    now = next(item for item in snapshot(project.pk) if item.queue_id == queue.pk)

    assert (now.ready, now.scheduled, now.claimed + now.running) == (2, 1, 1)
    assert now.oldest_age_s is not None
    assert sum(item.dead_letters for item in snapshot(project.pk)) == 1
    assert not now.is_capped
    assert now.as_of is not None


def test_counting_ends_at_the_ceiling_and_says_so(queue):
    make_jobs(queue, 5)

    look_at_queues(cap=3)

    stat = QueueStat.objects.get(queue_id=queue.pk)
    assert (stat.ready, stat.is_capped) == (3, True)


def test_every_queue_has_its_turn(project):
    queues = [make_queue(project) for _ in range(19)]

    look_at_all_queues()

    assert QueueStat.objects.count() == len(queues)


def test_a_queue_nobody_has_counted_yet_says_so(queue):
    [now] = queues_now([queue.project_id])

    assert (now.as_of, now.ready) == (None, 0)


def test_the_answer_needs_three_queries_however_many_queues(queue, project, django_assert_max_num_queries):
    for _ in range(5):
        make_job(make_queue(project))
    fold_all()
    look_at_all_queues()

    with django_assert_max_num_queries(4):
        assert len(queues_now([project.pk])) == 6


def test_what_is_old_is_forgotten_and_the_sum_of_all_time_stays(queue):
    make_job(queue)
    fold_all()
    JobStat.objects.filter(grain="minute").update(at=database_now() - timedelta(hours=49))
    JobStat.objects.filter(grain="hour").update(at=database_now() - timedelta(days=91))

    forget_old()

    assert set(JobStat.objects.values_list("grain", flat=True)) == {"day", "all"}


def test_buckets_of_the_database_are_those_of_the_code(queue):
    from jobs.histogram import BUCKETS, upper_bound_ms

    times = [upper_bound_ms(i) for i in range(BUCKETS - 1)] + [1e9]
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into job_stat_deltas (project_id, queue_id, job_type, at, runs_ms) values (%s, %s, 'x', now(), %s)",
            [queue.project_id, queue.pk, times],
        )
    fold_all()

    [row] = JobStat.objects.filter(grain="all").exclude(queue_id=WHOLE_PROJECT)
    assert row.run_histogram == [1] * BUCKETS
