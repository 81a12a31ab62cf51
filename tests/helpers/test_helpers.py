"""The helpers for people who write handlers, used as they would use them, on a small app of theirs."""

from __future__ import annotations

import pytest

from jobs.decisions import Succeeded
from jobs.handlers import Discard
from jobs.handlers.base import Stopped
from jobs.lifecycle.submit import NewJob, Parent, submit_job
from jobs.models import JobExecution, JobLog, ScheduledJob, ScheduleFire
from jobs.services import batches, schedules
from jobs.testing import Ran, StillBusy, assert_not_submitted
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.errors import ValidationFailed
from scheduler_project.lib.sealed_json import MASK
from tests.factories import claim_one, end, path_of, reload, status_of
from tests.sample_app import handlers

GOOD = {"to": "ada@example.com", "token": "s3cr3t-t0ken", "copies": 2}


def submit(queue, job_type, payload=None, **fields):
    return submit_job(queue, NewJob(job_type=job_type, payload=payload or {}, **fields))


# -- inline ------------------------------------------------------------------------------------------------------
def test_a_handler_runs_inline_and_its_words_are_kept(run_inline):
    made = run_inline(handlers.welcome, GOOD)

    assert made.result == {"sent": 2}
    assert made.messages == [f"copy 1 to ada@example.com with {MASK}", f"copy 2 to ada@example.com with {MASK}"]
    assert [step.percent for step in made.progress] == [50, 100]


def test_by_its_type_and_on_an_event_loop(run_inline):
    assert run_inline("shop.flaky", {"good_from": 1}).result == 1
    assert run_inline("sleep_0").result == {"slept_ms": 0}


def test_what_it_raises_is_raised(run_inline):
    with pytest.raises(RuntimeError, match="attempt 1"):
        run_inline(handlers.flaky)
    assert run_inline(handlers.flaky, attempt=2).result == 2
    with pytest.raises(Discard):
        run_inline(handlers.total)
    with pytest.raises(Stopped, match="cancelled"):
        run_inline(handlers.welcome, GOOD, stop="cancelled")


def test_a_payload_that_would_be_refused_is_refused(run_inline):
    with pytest.raises(ValidationFailed, match=r"payload\.copies: must be at most 10"):
        run_inline(handlers.welcome, {**GOOD, "copies": 11})


def test_parents_results_are_given(run_inline):
    assert run_inline(handlers.total, parent_results={"a": 1, "b": 2}).result == 3


def test_what_is_no_handler_is_told(run_inline):
    with pytest.raises(LookupError, match="no handler for 'nobody'"):
        run_inline("nobody")
    with pytest.raises(LookupError, match="is no handler"):
        run_inline(len)


def test_inline_needs_no_database(run_inline):
    """No database fixture is asked for here: a query would fail."""
    assert run_inline(handlers.welcome, GOOD).result


# -- drain -------------------------------------------------------------------------------------------------------
def test_a_queue_is_drained_with_all_that_its_jobs_submit(punctual_queue, drain, assert_submitted):
    submit(punctual_queue, "shop.order", {"queue": str(punctual_queue.pk), "customer": "ada@example.com"})

    ran = drain(punctual_queue)

    assert [(one.job_type, one.status, one.result) for one in ran] == [
        ("shop.order", "completed", None), ("shop.welcome", "completed", {"sent": 1}),
    ]  # fmt: skip
    [job] = assert_submitted("shop.welcome", payload__contains={"token": "t-ada@example.com"}, priority=3)
    assert job.payload["to"] == "ada@example.com"
    assert JobLog.objects.get().message == f"copy 1 to ada@example.com with {MASK}"
    assert JobExecution.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_drain_works_with_committed_rows_too(punctual_queue, drain):
    submit(punctual_queue, "shop.count")

    assert [one.result for one in drain(punctual_queue)] == [1]


def test_an_async_handler_sees_what_the_test_wrote(punctual_queue, drain):
    submit(punctual_queue, "shop.count")

    assert [one.result for one in drain(path_of(punctual_queue))] == [Queue.objects.count()]


def test_only_the_queue_that_was_named_is_drained_or_all(punctual_queue, drain):
    other = Queue.objects.create(project=punctual_queue.project, name="other")
    jobs = [submit(punctual_queue, "noop"), submit(other, "noop"), submit(other, "nobody.knows")]

    assert [one.job_id for one in drain(other)] == [jobs[1].id]
    assert [one.job_id for one in drain()] == [jobs[0].id]
    assert status_of(jobs[2]) == "queued"
    with pytest.raises(LookupError, match="no queue 'a/b/c'"):
        drain("a/b/c")


def test_a_limited_a_paused_and_an_urgent_queue_are_drained_as_by_a_worker(punctual_queue, drain):
    Queue.objects.filter(pk=punctual_queue.pk).update(max_concurrency=1)
    jobs = [submit(punctual_queue, "noop", priority=p) for p in (0, 5, 1)]
    paused = Queue.objects.create(project=punctual_queue.project, name="paused", is_paused=True)
    submit(paused, "noop")

    assert [one.job_id for one in drain()] == [jobs[1].id, jobs[2].id, jobs[0].id]
    assert drain(paused) == []


def test_jobs_without_end_are_noticed(punctual_queue, drain):
    submit(punctual_queue, "shop.endless", {"queue": str(punctual_queue.pk)})

    with pytest.raises(StillBusy, match=r"5 attempts were made .* next a shop\.endless job"):
        drain(punctual_queue, max_jobs=5)


def test_a_graph_is_drained_in_its_order(punctual_queue, drain):
    first = submit(punctual_queue, "shop.flaky", {"good_from": 1})
    second = submit(punctual_queue, "shop.sum", depends_on=[Parent(first.id)])

    ran = drain(punctual_queue)

    assert [(one.job_id, one.result) for one in ran] == [(first.id, 1), (second.id, 1)]


# -- time --------------------------------------------------------------------------------------------------------
def test_a_retry_comes_when_its_time_has_come(punctual_queue, drain, time_passes):
    job = submit(punctual_queue, "shop.flaky")

    [first] = drain(punctual_queue)
    assert (first.status, first.error) == ("scheduled", "RuntimeError: attempt 1")
    assert drain(punctual_queue) == []
    time_passes(3_600)

    assert drain(punctual_queue) == [Ran(job.id, "shop.flaky", 2, "completed", None, 2)]


def test_a_retry_does_not_come_before_its_time(punctual_queue, drain, time_passes):
    policy = RetryPolicy.objects.create(
        project=punctual_queue.project, name="p", strategy="fixed", base_delay_ms=60_000, jitter=False
    )
    submit(punctual_queue, "shop.flaky", retry_policy_id=policy.pk)
    drain(punctual_queue)

    time_passes(50)
    assert drain(punctual_queue) == []
    time_passes(11)
    assert len(drain(punctual_queue)) == 1


def test_a_delayed_job_becomes_due(punctual_queue, drain, time_passes):
    submit(punctual_queue, "noop", delay_s=86_400)

    time_passes(86_000)
    assert drain() == []
    time_passes(401)
    assert len(drain()) == 1


def test_a_lease_runs_out(punctual_queue, time_passes, drain):
    job = submit(punctual_queue, "noop")
    lease = claim_one(punctual_queue)

    time_passes(punctual_queue.visibility_timeout_secs + 1)

    assert status_of(job) == "scheduled"
    assert JobExecution.objects.get().status == "lost"
    assert [ending.job_id for ending in end(lease, Succeeded()).lost] == [str(job.id)]
    time_passes(3_600)
    assert [one.attempt for one in drain()] == [2]


def test_a_schedule_fires_again_and_again(punctual_queue, time_passes, drain):
    schedules.create_schedule(
        punctual_queue, name="s", cron_expression="0 * * * *", job_type="noop", misfire_policy="run_all"
    )

    time_passes(3_600)
    assert len(drain()) == 1
    time_passes(3_600)
    assert len(drain()) == 1
    time_passes(3 * 3_600)
    assert len(drain()) == 3
    assert ScheduleFire.objects.filter(outcome="fired").count() == 5
    assert ScheduledJob.objects.get().last_error == ""


def test_a_batch_ends_and_calls_back(punctual_queue, time_passes, drain, assert_submitted):
    callback = {"queue_id": str(punctual_queue.pk), "job_type": "test.echo", "payload": {"n": 1}}
    batch = batches.create_batch(punctual_queue.project_id, "b", callbacks={"on_success": callback})
    batches.add_jobs(batch.pk, punctual_queue, [NewJob(job_type="noop")] * 2)
    batches.close_batch(batch.pk)
    drain()

    time_passes(1)

    assert_submitted("test.echo", count=1, payload__contains={"n": 1, "batch": {"completed": 2}})


def test_time_does_not_go_back(time_passes):
    for seconds in (0, -1):
        with pytest.raises(ValueError, match="forwards only"):
            time_passes(seconds)


# -- submitted ---------------------------------------------------------------------------------------------------
def test_what_was_submitted_is_found(punctual_queue, assert_submitted):
    job = submit(punctual_queue, "shop.welcome", GOOD)
    submit(punctual_queue, "test.echo", {"items": [{"n": 1}, {"n": 2}], "user": {"id": 3}})

    assert [found.pk for found in assert_submitted("shop.welcome", payload=GOOD)] == [job.id]
    assert_submitted("test.echo", payload__contains={"items": [{"n": 2}]}, payload__user__id=3, count=1)
    assert_submitted("test.echo", queue=punctual_queue)
    assert_not_submitted("test.echo", payload__contains={"items": [{"n": 3}]})
    assert_not_submitted("noop")
    assert reload(job).payload["token"] != "s3cr3t-t0ken"


def test_what_was_not_submitted_is_told_with_what_was(punctual_queue, assert_submitted):
    submit(punctual_queue, "shop.welcome", GOOD)

    with pytest.raises(AssertionError, match=r"one noop wanted, 0 found; submitted were shop\.welcome"):
        assert_submitted("noop")
    with pytest.raises(
        AssertionError, match=r"one shop\.welcome wanted with payload__contains=.*'copies': 2"
    ) as failure:
        assert_submitted("shop.welcome", payload__contains={"to": "bob@example.com"})
    assert "s3cr3t" not in str(failure.value)
    with pytest.raises(AssertionError, match="2 shop"):
        assert_submitted("shop.welcome", count=2)
    with pytest.raises(AssertionError, match="0 shop"):
        assert_not_submitted("shop.welcome")
