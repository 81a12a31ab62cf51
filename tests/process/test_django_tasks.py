"""Tasks of Django's API, run by a worker process that was told of them by its settings alone."""

from __future__ import annotations

from typing import Any

import pytest
from django_tasks import TaskResultStatus

from tests.factories import path_of
from tests.processes import worker
from tests.sample_app import tasks
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


def test_a_worker_process_runs_them(committed_queue, settings):
    path = path_of(committed_queue)
    options = {"queues": {"default": path}, "max_attempts": 1}
    settings.TASKS = {"default": {"BACKEND": "jobs.tasks_backend.PunctualBackend", "OPTIONS": options}}
    results: list[Any] = [tasks.add.enqueue(1, b=2), tasks.add_slowly.enqueue(3, 4), tasks.fail.enqueue("no")]

    env = {"APP_TASK_QUEUES": f"default={path}", "APP_HANDLER_MODULES": "tests.sample_app.tasks"}
    with worker(env=env):
        wait_until(lambda: all(_is_finished(result) for result in results), timeout_s=30, what="the tasks end")

    assert [result.status for result in results] == [
        TaskResultStatus.SUCCESSFUL, TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED,
    ]  # fmt: skip
    assert [result.return_value for result in results[:2]] == [3, 7]
    assert results[2].errors[0].exception_class is ValueError
    assert results[0].worker_ids == results[1].worker_ids


def _is_finished(result) -> bool:
    result.refresh()
    return bool(result.is_finished)
