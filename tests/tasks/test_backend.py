"""What django-tasks promises of a backend, on this engine."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django_tasks import TaskResultStatus, default_task_backend, task_backends
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist, TaskResultMismatch
from django_tasks.signals import task_enqueued, task_finished, task_started

from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import Job
from jobs.tasks_backend import PunctualBackend, Unfinished
from jobs.testing import drain, time_passes
from tests.factories import claim_one, make_queue, path_of
from tests.sample_app import tasks

BACKEND = "jobs.tasks_backend.PunctualBackend"


@pytest.fixture(autouse=True)
def mail_queue(queue, settings):
    mail = make_queue(queue.project)
    paths = {"default": path_of(queue), "mail": path_of(mail)}
    settings.TASKS = {
        "default": {"BACKEND": BACKEND, "OPTIONS": {"queues": paths}},
        "once": {"BACKEND": BACKEND, "OPTIONS": {"queues": paths, "max_attempts": 1}},
        "broken": {"BACKEND": BACKEND, "OPTIONS": {"queues": {"default": "no/such/queue"}}},
    }
    tasks.calls.clear()
    return mail


def test_it_says_what_it_can_do():
    assert isinstance(task_backends["default"], PunctualBackend)
    for word in ("defer", "async_task", "get_result", "priority"):
        assert getattr(default_task_backend, f"supports_{word}")


def test_a_task_is_enqueued_run_and_its_result_read(queue):
    result: Any = tasks.add.enqueue(1, b=3)

    assert (result.status, result.args, result.kwargs) == (TaskResultStatus.READY, [1], {"b": 3})
    assert (result.started_at, result.finished_at, result.worker_ids, result.errors) == (None, None, [], [])
    assert result.enqueued_at is not None
    assert not result.is_finished
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value
    [ran] = drain(queue)
    assert tasks.calls == [(1, 3)]
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == (TaskResultStatus.SUCCESSFUL, 4, 1)
    assert result.is_finished
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at
    assert tasks.add.get_result(result.id) == default_task_backend.get_result(result.id)
    assert str(ran.job_id) == result.id


def test_an_async_task_runs_and_so_do_the_async_calls(queue):
    result: Any = tasks.add_slowly.enqueue(1, 2)

    assert Job.objects.get().job_type == "django.task.async"
    drain(queue)
    result.refresh()
    assert result.return_value == 3


@pytest.mark.django_db(transaction=True)
def test_everything_has_an_async_form(queue):
    async def steps():
        result = await tasks.add.aenqueue(1)
        found = await tasks.add.aget_result(result.id)
        await result.arefresh()
        await sync_to_async(connections.close_all)()  # the event loop's thread has one of its own
        return result, found

    result, found = asyncio.run(steps())

    assert result.id == found.id
    assert result.status == TaskResultStatus.READY


def test_the_context_knows_the_attempt(queue):
    result = tasks.which_attempt.enqueue(fail_before=1)

    drain(queue)
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.READY, 1)
    time_passes(3_600)
    drain(queue)

    result.refresh()
    assert result.return_value == [2, result.id, "RUNNING"]
    assert result.attempts == 2
    [error] = result.errors
    assert error.exception_class is tasks.Refused
    assert "over two lines" in error.traceback
    assert "raised by a task" not in error.traceback


def test_a_failure_keeps_the_exception_and_its_traceback(queue):
    result = tasks.fail.using(backend="once").enqueue("no way")

    drain(queue)

    result.refresh()
    assert (result.status, result.backend) == (TaskResultStatus.FAILED, "once")
    assert result.is_finished
    [error] = result.errors
    assert error.exception_class is ValueError
    assert error.traceback.startswith("Traceback (most recent call last):")
    assert error.traceback.endswith("ValueError: no way\n")
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_an_attempt_without_an_exception_of_the_task_is_an_error_too(queue):
    result = tasks.later.using(backend="once").enqueue()

    drain(queue)

    result.refresh()
    assert (result.errors[0].exception_class, result.errors[0].traceback) == (Unfinished, "not yet")
    assert result.status == TaskResultStatus.FAILED


def test_a_cancelled_task_has_failed(queue):
    result = tasks.add.enqueue(1)

    cancel_job(Job.objects.get().pk, reason="x")

    result.refresh()
    assert (result.status, result.errors) == (TaskResultStatus.FAILED, [])
    assert result.finished_at is not None


def test_a_running_task_is_shown_as_running(queue):
    result = tasks.add.enqueue(1)
    lease = claim_one(queue)

    result.refresh()

    assert result.status == TaskResultStatus.RUNNING
    assert (result.attempts, result.finished_at) == (1, None)
    assert result.started_at is not None
    assert lease.job_id == result.id


def test_priorities_are_kept_and_order_the_queue(queue):
    first, second = tasks.add.enqueue(1), tasks.add.using(priority=100).enqueue(2)
    usual = tasks.fail.enqueue("x")

    assert Job.objects.get(pk=usual.id).priority == 7
    assert default_task_backend.get_result(second.id).task.priority == 100
    assert [str(ran.job_id) for ran in drain(queue)] == [second.id, usual.id, first.id]


@pytest.mark.parametrize("priority", [-101, 101, 1.5])
def test_other_priorities_are_refused(priority):
    with pytest.raises(InvalidTaskError, match="priority must be a whole number"):
        tasks.add.using(priority=priority)


def test_run_after_is_waited_for(queue):
    at = datetime.now(UTC) + timedelta(hours=2)
    result = tasks.add.using(run_after=at).enqueue(1)

    assert drain(queue) == []
    assert default_task_backend.get_result(result.id).task.run_after == at
    time_passes(2 * 3_600)
    assert len(drain(queue)) == 1


def test_a_naive_run_after_is_refused():
    with pytest.raises(InvalidTaskError, match="aware"):
        tasks.add.using(run_after=datetime(2030, 1, 1))


def test_the_queue_name_chooses_the_queue(queue, mail_queue):
    result = tasks.add.using(queue_name="mail").enqueue(1)

    assert Job.objects.get().queue_id == mail_queue.pk
    assert default_task_backend.get_result(result.id).task.queue_name == "mail"
    with pytest.raises(InvalidTaskError, match="not valid for backend"):
        tasks.add.using(queue_name="other")


def test_a_queue_that_does_not_exist_is_told(queue):
    with pytest.raises(ImproperlyConfigured, match="'no/such/queue', and there is no such queue"):
        tasks.add.using(backend="broken").enqueue(1)


@pytest.mark.django_db(transaction=True)
def test_a_task_begins_after_the_commit_and_is_gone_with_a_rollback(queue):
    with transaction.atomic():
        kept = tasks.add.enqueue(1)

    class Oops(Exception):
        pass

    def enqueue_and_fail() -> None:
        with transaction.atomic():
            lost.append(tasks.add.enqueue(2))
            raise Oops

    lost: list[Any] = []
    with pytest.raises(Oops):
        enqueue_and_fail()

    assert tasks.add.get_result(kept.id).status == TaskResultStatus.READY
    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_result(lost[0].id)


def test_arguments_must_be_json(queue):
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.add.enqueue(object())  # type: ignore[arg-type] # is meant
    result = tasks.add.enqueue((1, 2), b=b"text")  # type: ignore[arg-type]
    assert (result.args, result.kwargs) == ([[1, 2]], {"b": "text"})
    assert not Job.objects.exclude(pk=result.id).exists()


def test_a_result_that_is_no_json_fails_the_task(queue):
    result = tasks.unstorable.using(backend="once").enqueue()

    drain(queue)

    result.refresh()
    assert result.errors[0].exception_class is TypeError


@pytest.mark.parametrize("result_id", ["", "x", "01890a5d-ac96-774b-bcce-b302099a8057", "\0"])
def test_unknown_results_do_not_exist(result_id):
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(result_id)


def test_jobs_that_are_no_tasks_and_other_backends_tasks_are_no_results(queue):
    job = submit_job(queue, NewJob(job_type="noop"))
    other = tasks.add.using(backend="once").enqueue(1)

    for id_ in (str(job.id), other.id):
        with pytest.raises(TaskResultDoesNotExist):
            default_task_backend.get_result(id_)
    assert task_backends["once"].get_result(other.id).id == other.id


def test_a_result_of_another_task_is_a_mismatch(queue):
    result = tasks.add.enqueue(1)

    with pytest.raises(TaskResultMismatch):
        tasks.fail.get_result(result.id)


def test_signals_are_sent(queue):
    heard = []

    def hear(signal, sender, task_result, **_):
        heard.append((signal, sender, task_result.id, str(task_result.status), task_result.attempts))

    signals = (task_enqueued, task_started, task_finished)
    for signal in signals:
        signal.connect(hear)
    try:
        good = tasks.add.enqueue(1)
        drain(queue)
        bad = tasks.fail.using(backend="once").enqueue("x")
        drain(queue)
    finally:
        for signal in signals:
            signal.disconnect(hear)

    assert heard == [
        (task_enqueued, PunctualBackend, good.id, "READY", 0),
        (task_started, PunctualBackend, good.id, "RUNNING", 1),
        (task_finished, PunctualBackend, good.id, "SUCCESSFUL", 1),
        (task_enqueued, PunctualBackend, bad.id, "READY", 0),
        (task_started, PunctualBackend, bad.id, "RUNNING", 1),
        (task_finished, PunctualBackend, bad.id, "FAILED", 1),
    ]


def test_a_listener_that_fails_costs_no_task(queue):
    def fail(**_):
        raise RuntimeError("listener")

    task_started.connect(fail)
    try:
        result = tasks.add.enqueue(1)
        drain(queue)
    finally:
        task_started.disconnect(fail)

    result.refresh()
    assert result.return_value == 3


@pytest.mark.parametrize(
    "path",
    [
        "tests.sample_app.tasks.no_task",
        "tests.sample_app.tasks.calls",
        "tests.sample_app.tasks.alias_of_add",
        "tests.sample_app.tasks.add.func",
        "os.system",
        "tests.sample_app.never_read.boom",
        "add",
        "",
        ".",
    ],
)
def test_only_tasks_run_and_no_name_imports_anything(queue, path):
    payload = {"task": path, "args": ["true"], "kwargs": {}, "backend": "default", "queue_name": "default"}
    submit_job(queue, NewJob(job_type="django.task", payload=payload))

    [ran] = drain(queue)

    assert ran.status == "dead_letter"
    assert ran.error == f"{path!r} is no @task function that this worker has read"
    assert tasks.calls == []
    assert "tests.sample_app.never_read" not in sys.modules


def test_nobody_submits_a_task_through_the_api(as_owner, as_machine, queue):
    payload = {"task": "tests.sample_app.tasks.add", "args": [1], "kwargs": {}, "backend": "default",
               "queue_name": "default"}  # fmt: skip
    for job_type in ("django.task", "django.task.async"):
        job = {"queue_id": str(queue.pk), "job_type": job_type, "payload": payload}
        callback = {"queue_id": str(queue.pk), "job_type": job_type}
        refused = [
            as_owner.post("jobs", job),
            as_owner.post("jobs/bulk", {"jobs": [job]}),
            as_machine.post("batches", {"name": "b", "jobs": [job]}),
            as_machine.post("batches", {"name": "b", "on_end": callback}),
            as_owner.post("scheduled-jobs", {**callback, "name": "s", "cron_expression": "0 0 * * *"}),
        ]
        assert [answer.status_code for answer in refused] == [400] * 5
        assert all("code of this installation only" in answer.json()["message"] for answer in refused)
    assert not Job.objects.exists()
    shown = {item["name"] for item in as_owner.get("job-types", limit=200).json()["items"]}
    assert not {"django.task", "django.task.async"} & shown


def test_settings_are_checked(settings):
    good = settings.TASKS["default"]
    assert [found.id for found in run_checks() if str(found.id).startswith("punctual")] == []
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "x"],
                                  "OPTIONS": {**good["OPTIONS"], "max_attempts": 0, "on_commit": True}}}  # fmt: skip

    found = {message.id: message.msg for message in run_checks() if str(message.id).startswith("punctual")}

    assert found == {
        "punctual.E001": "TASKS['default']: unknown option 'on_commit'; known: max_attempts, queues.",
        "punctual.E002": "TASKS['default']: OPTIONS['queues'] has no 'x'.",
        "punctual.E003": "TASKS['default']: max_attempts must be from 1 to 1000.",
    }
