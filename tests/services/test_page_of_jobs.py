"""A page of jobs out of more queues than it has rows is the page of a list of all of them."""

from __future__ import annotations

import pytest

from jobs.decisions import Failed
from jobs.lifecycle.cancel import cancel_jobs
from jobs.models import Job
from jobs.selectors import job_lists
from jobs.selectors.job_lists import JobFilter, page_of_jobs
from tests.factories import claim_one, end, make_job, make_queue

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


@pytest.mark.parametrize("first_look", [1, 4])
@pytest.mark.parametrize("status", [None, "dead_letter"])
def test_jobs_of_an_error_are_all_found_in_order(project, monkeypatch, first_look, status):
    monkeypatch.setattr(job_lists, "FIRST_LOOK", first_look)
    queue, other = make_queue(project), make_queue(project)
    for number in range(6):
        make_job(queue if number % 3 else other, max_attempts=1 if number % 2 else 5)
        end(claim_one(queue if number % 3 else other), Failed(f"time out {number}"))
    make_job(queue, max_attempts=1)
    end(claim_one(queue), Failed("no customer"))
    wanted = JobFilter(queue_ids=[queue.pk], project_id=project.pk, status=status, error="TIME out")
    fitting = Job.objects.filter(queue=queue, error_message__contains="time").order_by("-id")
    every = list((fitting.filter(status=status) if status else fitting).values_list("id", flat=True))

    first = [job.pk for job in page_of_jobs(wanted, cursor=None, rows=slice(0, 2)).jobs]
    more = [job.pk for job in page_of_jobs(wanted, cursor=first[-1], rows=slice(0, 9)).jobs]

    assert len(every) == (2 if status else 4)
    assert (first, more) == (every[:2], every[2:])
