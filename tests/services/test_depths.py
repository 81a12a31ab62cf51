"""How deep queues were: kept once a minute from what the leader counts anyway, and forgotten after a day."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from jobs.models import WHOLE_PROJECT, QueueDepth, QueueStat
from jobs.scheduler.duties.statistics import duty
from jobs.selectors.depths import depths
from jobs.services.statistics import QUEUES_AT_ONCE, forget_old, keep_depths, look_at_all_queues, look_at_queues
from queues.models import Queue
from scheduler_project.lib.sql import database_now
from tests.factories import claim_one, job_in, make_job, make_jobs, make_project, make_queue

MINUTE = timedelta(minutes=1)


def this_minute():
    return database_now().replace(second=0, microsecond=0)


def kept() -> dict[object, list[int]]:
    names = ("queue_id", "ready", "scheduled", "in_flight", "dead_letters")
    return {of: counts for of, *counts in QueueDepth.objects.values_list(*names)}


def test_a_walk_over_the_queues_keeps_each_and_their_sum(queue, project):
    other = make_queue(project)
    make_jobs(queue, 3)
    claim_one(queue)
    make_job(other, delay_s=60)
    job_in("dead_letter", other)

    look_at_all_queues()

    assert kept() == {queue.pk: [2, 0, 1, 0], other.pk: [0, 1, 0, 1], WHOLE_PROJECT: [2, 1, 1, 1]}


def test_a_queue_in_which_nothing_is_needs_no_row(queue):
    look_at_all_queues()

    assert kept() == {WHOLE_PROJECT: [0, 0, 0, 0]}


def test_a_minute_is_kept_once(queue):
    make_job(queue)
    look_at_all_queues()
    QueueDepth.objects.update(at=this_minute())
    make_job(queue)
    look_at_all_queues()

    # The minute may have turned in between: then there are two, each with its own.
    assert [row.ready for row in QueueDepth.objects.filter(queue_id=queue.pk).order_by("at")] in ([1], [1, 2])


def test_a_second_project_that_comes_later_is_kept_too(queue):
    look_at_all_queues()
    later = make_queue(make_project())
    make_job(later)
    look_at_all_queues()

    assert kept()[later.pk] == [1, 0, 0, 0]


def test_what_was_counted_long_ago_or_is_deleted_is_not_kept(queue, project):
    gone = make_queue(project)
    for one in (queue, gone):
        make_job(one)
    look_at_queues()
    QueueStat.objects.filter(queue_id=queue.pk).update(as_of=F("as_of") - timedelta(minutes=6))
    Queue.objects.filter(pk=gone.pk).update(deleted_at=database_now())

    keep_depths()

    assert kept() == {}


def test_depths_of_more_than_a_day_are_forgotten(queue):
    make_job(queue)
    look_at_all_queues()
    QueueDepth.objects.filter(queue_id=queue.pk).update(at=database_now() - timedelta(hours=25, minutes=1))
    QueueDepth.objects.filter(queue_id=WHOLE_PROJECT).update(at=database_now() - timedelta(hours=24))

    forget_old()

    assert set(kept()) == {WHOLE_PROJECT}


def test_a_bar_shows_the_most_of_its_minutes_and_tells_nothing_from_unknown(queue):
    start = this_minute()
    row = {"project_id": queue.project_id, "scheduled": 0, "in_flight": 0, "dead_letters": 0}
    for minute, ready in ((0, 5), (1, 9), (2, 0)):
        QueueDepth.objects.create(queue_id=WHOLE_PROJECT, at=start + minute * MINUTE, ready=ready + 1, **row)
    for minute, ready in ((0, 5), (1, 9)):
        QueueDepth.objects.create(queue_id=queue.pk, at=start + minute * MINUTE, ready=ready, **row)
    bars = [start + 2 * i * MINUTE for i in range(3)]

    assert depths(queue.project_id, bars, queue.pk).ready == [9, 0, None]
    assert depths(queue.project_id, bars).ready == [10, 1, None]
    assert depths(make_project().pk, bars).ready == [None, None, None]


def test_one_statement_whatever_the_range(queue, django_assert_num_queries):
    bars = [this_minute() - i * MINUTE for i in range(96, 0, -1)]
    with django_assert_num_queries(1):
        depths(queue.project_id, bars, queue.pk)


def test_the_leaders_duty_keeps_them_at_the_end_of_a_walk(queue, project):
    make_jobs(queue, 2)
    for _ in range(QUEUES_AT_ONCE):  # more than one step of the walk
        make_queue(project)

    walk = duty(1.0)
    while walk.run() is not None:  # it goes on later if the machine is slow
        pass

    assert kept() == {queue.pk: [2, 0, 0, 0], WHOLE_PROJECT: [2, 0, 0, 0]}
    assert QueueStat.objects.count() == QUEUES_AT_ONCE + 1
