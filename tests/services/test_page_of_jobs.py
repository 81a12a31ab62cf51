"""A page of jobs out of more queues than it has rows is the page of a list of all of them."""

from __future__ import annotations

import pytest

from jobs.lifecycle.cancel import cancel_jobs
from jobs.models import Job
from jobs.selectors.job_lists import JobFilter, page_of_jobs
from tests.factories import make_job, make_queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue_ids(project):
    """Seven with jobs of mixed ages, some of them cancelled, and two without any."""
    queues = [make_queue(project) for _ in range(9)]
    for turn in (0, 1, 2, 3, 3, 3, 3, 4, 0, 5, 6, 1, 0, 0):
        cancel_jobs([make_job(queues[turn], delay_s=60).pk], reason="") if turn % 2 else make_job(queues[turn])
    return [queue.pk for queue in queues]


@pytest.mark.parametrize("status", [None, "cancelled", "queued"])
@pytest.mark.parametrize(("skip", "size"), [(0, 3), (0, 5), (2, 3), (0, 50)])
def test_pages_follow_one_another_without_a_gap(queue_ids, status, skip, size):
    wanted = JobFilter(queue_ids=queue_ids, status=status)
    jobs = Job.objects.order_by("-id").values_list("id", flat=True)
    every = list(jobs.filter(status=status) if status else jobs)

    cursor, seen = None, []
    while page := [job.pk for job in page_of_jobs(wanted, cursor=cursor, rows=slice(skip, skip + size)).jobs]:
        assert page == [id_ for id_ in every if cursor is None or id_ < cursor][skip : skip + size]
        seen += page
        cursor = page[-1]

    assert seen[0] == every[skip]
    assert set(seen) <= set(every)
    if not skip:
        assert seen == every
