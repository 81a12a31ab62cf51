"""How deep queues are together, whether the leader has counted all of them or not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from jobs.models import QueueStat
from jobs.selectors import dashboard
from jobs.selectors.dashboard import project_now
from jobs.selectors.depth_now import depth_of_all
from jobs.services.statistics import look_at_all_queues
from scheduler_project.lib.sql import database_now
from tests.factories import claim_one, job_in, make_jobs, make_queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def queues(project):
    made = [make_queue(project, name=name) for name in "abc"]
    job_in("dead_letter", made[1])
    for queue, count in zip(made, (3, 1, 2), strict=True):
        make_jobs(queue, count)
    claim_one(made[0])
    return made


def test_it_is_the_sum_of_what_was_counted_and_what_was_not(queues, project, django_assert_num_queries):
    ids = [queue.pk for queue in queues]
    by_hand = depth_of_all(project.pk, ids, database_now())
    look_at_all_queues()
    with django_assert_num_queries(2):  # the clock, the counts
        counted = depth_of_all(project.pk, ids, database_now())
    QueueStat.objects.filter(queue_id=ids[1]).update(as_of=F("as_of") - timedelta(minutes=1), ready=99)
    mixed = depth_of_all(project.pk, ids, database_now())

    assert dict(by_hand) == {"queued": 5, "scheduled": 0, "claimed": 0, "running": 1, "dead_letter": 1}
    assert dict(counted) == dict(by_hand)
    assert dict(mixed) == dict(by_hand)


def test_queues_that_were_not_asked_for_are_left_out(queues, project):
    look_at_all_queues()

    assert depth_of_all(project.pk, [queues[2].pk], database_now())["queued"] == 2
    assert depth_of_all(project.pk, [], database_now())["queued"] == 0


def test_the_dashboard_sums_up_all_queues_and_shows_the_deepest(queues, project, monkeypatch):
    look_at_all_queues()
    all_of_them = project_now(project, database_now())
    monkeypatch.setattr(dashboard, "MOST_QUEUES", 2)

    now = project_now(project, database_now())

    assert [row.queue.name for row in now.queues] == ["a", "c"]
    assert dict(now.total) == dict(all_of_them.total)
    assert now.total["queued"] == 5
    assert now.oldest_s == pytest.approx(all_of_them.oldest_s, abs=30)
