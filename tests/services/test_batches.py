"""Batches: counts that can not drift, an end that is noticed once, callbacks that come once."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from jobs.decisions import Discarded, Failed, Succeeded, Verdict
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.lifecycle.submit import NewJob
from jobs.models import Job, JobBatch
from jobs.selectors.batches import progress_with_children
from jobs.services.batches import add_jobs, cancel_batch, close_batch, create_batch, fold_batches
from queues.models import Queue
from scheduler_project.lib.errors import Conflict, ValidationFailed
from tests.factories import claim_from, make_queue

pytestmark = pytest.mark.django_db
NOOP = NewJob(job_type="noop")


def make_batch(queue: Queue, name: str = "import", **fields: object) -> JobBatch:
    calls = {
        kind: {"queue_id": str(queue.pk), "job_type": f"told.{kind}", "payload": {"mine": 1}}
        for kind in ("on_success", "on_end", "on_failure")
    }
    return create_batch(queue.project_id, name, callbacks=calls, **fields)  # type: ignore[arg-type]


def end_all(queue: Queue, verdict: Verdict, seats: int = 100) -> None:
    leases = claim_from(queue, seats)
    settle([Ending.of(lease, verdict, lease.job_id, 1.0) for lease in leases])


def told() -> list[str]:
    return sorted(Job.objects.filter(job_type__startswith="told.").values_list("job_type", flat=True))


def test_batch_that_succeeds_tells_so_once(queue: Queue) -> None:
    batch, elsewhere = make_batch(queue), make_queue(queue.project)
    add_jobs(batch.pk, elsewhere, [NOOP] * 5)
    end_all(elsewhere, Succeeded())
    assert fold_batches() == 0  # still open: more may come
    close_batch(batch.pk)

    assert [fold_batches(), fold_batches()] == [1, 0]

    batch.refresh_from_db()
    assert (batch.status, batch.total_jobs, batch.completed_jobs, batch.failed_jobs) == ("completed", 5, 5, 0)
    assert told() == ["told.on_end", "told.on_success"]
    payload = Job.objects.get(job_type="told.on_end").payload
    assert payload["mine"] == 1
    assert (payload["batch"]["id"], payload["batch"]["total"]) == (str(batch.pk), 5)


def test_first_failure_is_told_while_the_others_run_and_the_end_is_failed(queue: Queue) -> None:
    batch, elsewhere = make_batch(queue), make_queue(queue.project)
    add_jobs(batch.pk, elsewhere, [NOOP] * 10)
    close_batch(batch.pk)
    end_all(elsewhere, Discarded("no"), seats=2)

    fold_batches()
    fold_batches()
    assert told() == ["told.on_failure"]
    end_all(elsewhere, Succeeded())
    fold_batches()

    batch.refresh_from_db()
    assert (batch.status, batch.completed_jobs, batch.failed_jobs) == ("failed", 8, 2)
    assert told() == ["told.on_end", "told.on_failure"]


def test_retries_do_not_count_twice(queue: Queue) -> None:
    batch, elsewhere = make_batch(queue), make_queue(queue.project)
    add_jobs(batch.pk, elsewhere, [NOOP] * 3)
    close_batch(batch.pk)
    end_all(elsewhere, Failed("once", retry_after_s=0.0))
    fold_batches()
    assert told() == []
    Job.objects.filter(status="scheduled").update(status="queued")
    end_all(elsewhere, Succeeded())

    fold_batches()

    assert progress_with_children(JobBatch.objects.get()).completed == 3
    assert told() == ["told.on_end", "told.on_success"]


def test_empty_batch_ends_when_it_is_closed(queue: Queue) -> None:
    batch = make_batch(queue)
    close_batch(batch.pk)

    fold_batches()

    assert JobBatch.objects.get().status == "completed"
    assert told() == ["told.on_end", "told.on_success"]


def test_parent_ends_after_its_children_and_counts_them(queue: Queue) -> None:
    elsewhere = make_queue(queue.project)
    parent = create_batch(queue.project_id, "parent")
    child = create_batch(queue.project_id, "child", parent_id=parent.pk)
    add_jobs(parent.pk, elsewhere, [NOOP])
    add_jobs(child.pk, elsewhere, [NOOP] * 2)
    close_batch(parent.pk)
    end_all(elsewhere, Succeeded())
    assert fold_batches() == 0

    close_batch(child.pk)
    fold_batches()
    fold_batches()

    parent.refresh_from_db()
    assert (parent.status, parent.total_jobs) == ("completed", 3)
    with pytest.raises(ValidationFailed):
        create_batch(queue.project_id, "grandchild", parent_id=child.pk)


def test_cancelled_batch_ends_all_its_jobs(queue: Queue) -> None:
    batch, elsewhere = make_batch(queue), make_queue(queue.project)
    add_jobs(batch.pk, elsewhere, [NOOP] * 1_200)
    end_all(elsewhere, Succeeded(), seats=10)
    claim_from(elsewhere, 5)

    assert cancel_batch(batch.pk) == 1_190

    assert Job.objects.filter(batch=batch, status="cancelled").count() == 1_185
    assert Job.objects.filter(batch=batch, cancel_requested_at__isnull=False, status="running").count() == 5


def test_closed_batch_takes_no_jobs_and_wrong_input_names_its_field(queue: Queue) -> None:
    batch = make_batch(queue)
    with pytest.raises(ValidationFailed):
        add_jobs(batch.pk, make_queue(), [NOOP])
    with pytest.raises(ValidationFailed):
        create_batch(queue.project_id, "x", callbacks={"on_end": {"queue_id": "no", "job_type": "noop"}})
    close_batch(batch.pk)

    with pytest.raises(Conflict):
        add_jobs(batch.pk, queue, [NOOP])


def test_batch_behind_hundreds_of_open_ones_ends_too(queue: Queue) -> None:
    for n in range(600):
        create_batch(queue.project_id, f"open {n}")
    batch = make_batch(queue)
    close_batch(batch.pk)

    assert fold_batches() == 1

    assert JobBatch.objects.get(pk=batch.pk).status == "completed"


def test_callback_that_can_not_be_submitted_does_not_keep_the_batch_from_ending(queue: Queue) -> None:
    batch, good = make_batch(queue), make_batch(make_queue(queue.project), "good")
    Queue.objects.filter(pk=queue.pk).update(deleted_at=Now())
    close_batch(batch.pk)
    close_batch(good.pk)

    assert fold_batches() == 2

    assert "deleted" in JobBatch.objects.get(pk=batch.pk).callback_error
    assert told() == ["told.on_end", "told.on_success"]


def test_parent_remembers_children_whose_jobs_are_archived(queue: Queue) -> None:
    elsewhere = make_queue(queue.project)
    parent = create_batch(queue.project_id, "parent")
    child = create_batch(queue.project_id, "child", parent_id=parent.pk)
    add_jobs(child.pk, elsewhere, [NOOP] * 3)
    close_batch(child.pk)
    end_all(elsewhere, Discarded("no"))
    fold_batches()
    Job.objects.filter(batch=child).delete()  # as retention does
    close_batch(parent.pk)

    fold_batches()

    parent.refresh_from_db()
    assert (parent.status, parent.total_jobs, parent.failed_jobs) == ("failed", 3, 3)
