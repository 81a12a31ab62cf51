"""promote: scheduled -> queued when the time has come."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from jobs.decisions import Failed
from jobs.lifecycle import promote
from jobs.lifecycle.promote import due_ids, due_in_s, promote_due
from jobs.models import Job
from queues.models import Queue
from tests.factories import claim_one, end, make_job, make_queue, reload

pytestmark = pytest.mark.django_db


def scheduled(queue: Queue, *, due_s: float) -> Job:
    """A scheduled job that is due in so many seconds, by the database's clock; negative is long due."""
    job = make_job(queue, delay_s=3_600)
    Job.objects.filter(pk=job.pk).update(run_at=Now() + timedelta(seconds=due_s))
    return reload(job)


def test_due_jobs_are_queued_and_keep_the_time_they_were_due(queue: Queue) -> None:
    job = scheduled(queue, due_s=-60)

    assert promote_due(limit=10) == 1

    promoted = reload(job)
    assert (promoted.status, promoted.run_at) == ("queued", job.run_at)
    assert promoted.updated_at > job.updated_at


def test_jobs_that_are_not_due_stay(queue: Queue) -> None:
    job = scheduled(queue, due_s=60)

    assert promote_due(limit=10) == 0
    assert reload(job).status == "scheduled"


def test_jobs_that_wait_for_another_stay_however_late_they_are(queue: Queue) -> None:
    job = scheduled(queue, due_s=-60)
    Job.objects.filter(pk=job.pk).update(is_blocked=True)

    assert promote_due(limit=10) == 0
    assert due_in_s() is None
    assert due_ids(10) == []


def test_the_longest_due_come_first_up_to_the_limit(queue: Queue) -> None:
    jobs = [scheduled(queue, due_s=-n) for n in (5, 9, 1, 7)]

    assert due_ids(2) == [str(jobs[1].pk), str(jobs[3].pk)]
    assert promote_due(limit=2) == 2

    assert [reload(job).status for job in jobs] == ["scheduled", "queued", "scheduled", "queued"]


def test_only_and_skip_choose_which_jobs_are_promoted(queue: Queue) -> None:
    one, two, three = (scheduled(queue, due_s=-1) for _ in range(3))

    assert promote_due(limit=10, skip=[str(one.pk)], only=[str(one.pk), str(two.pk)]) == 1
    assert [reload(job).status for job in (one, two, three)] == ["scheduled", "queued", "scheduled"]


def test_jobs_of_all_projects_paused_and_deleted_queues_are_promoted(queue: Queue) -> None:
    jobs = [
        scheduled(make_queue(), due_s=-1),
        scheduled(make_queue(is_paused=True), due_s=-1),
        scheduled(queue, due_s=-1),
    ]

    assert promote_due(limit=10) == 3
    assert {reload(job).status for job in jobs} == {"queued"}


def test_the_wait_for_the_next_due_job_is_told_in_seconds(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    assert due_in_s() is None

    scheduled(queue, due_s=90)
    assert due_in_s() == pytest.approx(90, abs=5)

    monkeypatch.setattr(promote, "JUST_S", 60.0)  # on a busy machine a moment is long over when it is asked for
    scheduled(queue, due_s=-30)
    assert due_in_s() == pytest.approx(-30, abs=5)


def test_what_was_due_before_and_could_not_be_promoted_does_not_hide_the_next(queue: Queue) -> None:
    scheduled(queue, due_s=-30)
    assert due_in_s() is None

    scheduled(queue, due_s=90)
    assert due_in_s() == pytest.approx(90, abs=5)


def test_a_retry_is_promoted_with_its_attempts_used(queue: Queue) -> None:
    job = make_job(queue)
    end(claim_one(queue), Failed("boom", None, 0.0))

    assert promote_due(limit=10) == 1
    assert claim_one(queue).attempt == 2
    assert reload(job).attempt_count == 1
