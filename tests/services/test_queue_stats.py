"""How queues are now, for autoscalers and /metrics."""

from __future__ import annotations

from jobs.selectors.queue_stats import queues_now
from jobs.services.statistics import look_at_all_queues
from tests.factories import claim_one, make_job, make_jobs, make_project, make_queue


def test_a_queue_nobody_has_counted_has_no_counts(queue):
    make_job(queue)

    [now] = queues_now([queue.project_id])

    assert (now.ready, now.oldest_age_s, now.as_of, now.is_capped) == (0, None, None, False)


def test_an_empty_queue_has_no_oldest_job(queue):
    look_at_all_queues()

    [now] = queues_now([queue.project_id])

    assert (now.ready, now.oldest_age_s) == (0, None)
    assert now.as_of is not None


def test_counts_and_capacity_are_those_of_the_last_look(project):
    queue = make_queue(project, name="b", max_concurrency=5)
    make_queue(project, name="a")
    make_queue(make_project())
    make_jobs(queue, 3)
    claim_one(queue)
    look_at_all_queues()

    first, second = queues_now([project.pk])

    assert [item.path.rpartition("/")[2] for item in (first, second)] == ["a", "b"]
    assert (second.ready, second.claimed + second.running, second.capacity) == (2, 1, 4)
    assert (second.oldest_age_s or 0.0) >= 0.0
    assert first.capacity is None
    assert len(queues_now(None)) == 3
