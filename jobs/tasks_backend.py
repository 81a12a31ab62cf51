"""A backend for Django's Tasks API (django-tasks): ``@task`` functions of any installed app run as jobs.

::

    TASKS = {
        "default": {
            "BACKEND": "jobs.tasks_backend.PunctualBackend",
            "OPTIONS": {"queues": {"default": "acme/web/default", "mail": "acme/web/email"}},
        }
    }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any
from uuid import UUID

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django_tasks import TaskResult, TaskResultStatus
from django_tasks.backends.base import BaseTaskBackend
from django_tasks.base import Task, TaskError
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist
from django_tasks.signals import task_enqueued
from django_tasks.utils import normalize_json

from jobs.handlers.django_task import ASYNC_TASK, NOTE, TASK, find_task
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import Job, JobExecution
from jobs.states import ExecutionStatus, JobStatus
from queues.models import MAX_ATTEMPTS, Queue
from queues.selectors import find_queue_by_path

_STATUSES = {
    JobStatus.SCHEDULED: TaskResultStatus.READY,
    JobStatus.QUEUED: TaskResultStatus.READY,
    JobStatus.CLAIMED: TaskResultStatus.READY,
    JobStatus.RUNNING: TaskResultStatus.RUNNING,
    JobStatus.COMPLETED: TaskResultStatus.SUCCESSFUL,
    JobStatus.FAILED: TaskResultStatus.FAILED,
    JobStatus.DEAD_LETTER: TaskResultStatus.FAILED,
    JobStatus.CANCELLED: TaskResultStatus.FAILED,
}
_UNHAPPY = (ExecutionStatus.FAILED, ExecutionStatus.LOST, ExecutionStatus.CANCELLED)
_OPTIONS = frozenset({"queues", "max_attempts"})


class Unfinished(Exception):
    """An attempt that ended without an exception of the task: its worker was lost, its time was up, it was stopped."""


class PunctualBackend(BaseTaskBackend):
    """Enqueues into the queues that OPTIONS names.

    A task is enqueued in the caller's transaction: it can not begin before the commit, and rolled back it never was.

    Options:
        queues: for each ``queue_name`` of a task the queue, as ``organization/project/queue``.
        max_attempts: attempts of each task; without it the queue's retry policy says how many.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._paths: Mapping[str, str] = self.options.get("queues", {})
        self._max_attempts: int | None = self.options.get("max_attempts")
        if "QUEUES" not in params:
            self.queues = set(self._paths)

    def enqueue(self, task: Task[Any, Any], args: Any, kwargs: Any) -> TaskResult[Any]:
        """Submit a job for the call.

        Raises:
            InvalidTaskError: the task can not run here.
            ImproperlyConfigured: its queue does not exist.
            TypeError: an argument is not JSON.
        """
        self.validate_task(task)
        call = {"args": normalize_json(list(args)), "kwargs": normalize_json(kwargs)}
        payload = {
            "task": task.module_path,
            **call,
            "backend": self.alias,
            "queue_name": task.queue_name,
            "run_after": None if task.run_after is None else task.run_after.isoformat(),
        }
        job = NewJob(
            job_type=ASYNC_TASK if iscoroutinefunction(task.func) else TASK,
            payload=payload,
            priority=task.priority,
            run_at=task.run_after,
            max_attempts=self._max_attempts,
        )
        submitted = submit_job(self._queue(task.queue_name), job)
        result: TaskResult[Any] = TaskResult(
            task=task,
            id=str(submitted.id),
            status=TaskResultStatus.READY,
            enqueued_at=submitted.created_at,
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            **call,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult[Any]:
        """What is known of a task now.

        Raises:
            TaskResultDoesNotExist: never enqueued through this backend, moved to the archive, or its function is gone.
        """
        try:
            job = Job.objects.filter(pk=UUID(str(result_id)), job_type__in=(TASK, ASYNC_TASK)).first()
        except ValueError:
            job = None
        if job is None or job.payload.get("backend") != self.alias:
            raise TaskResultDoesNotExist(result_id)
        task = find_task(job.payload["task"])
        if task is None:
            raise TaskResultDoesNotExist(f"{result_id}: its function {job.payload['task']} is no task here")
        return self._result(job, task, list(JobExecution.objects.filter(job_id=job.pk).order_by("fencing_number")))

    def check(self, **_: Any) -> Iterable[checks.CheckMessage]:
        """What is wrong with the settings, as far as they tell without a database."""
        unknown = sorted(set(self.options) - _OPTIONS)
        if unknown:
            text = f"TASKS[{self.alias!r}]: unknown option {unknown[0]!r}; known: {', '.join(sorted(_OPTIONS))}."
            yield checks.Error(text, id="punctual.E001")
        for name in sorted(self.queues - set(self._paths)):
            yield checks.Error(f"TASKS[{self.alias!r}]: OPTIONS['queues'] has no {name!r}.", id="punctual.E002")
        if self._max_attempts is not None and not 1 <= self._max_attempts <= MAX_ATTEMPTS:
            text = f"TASKS[{self.alias!r}]: max_attempts must be from 1 to {MAX_ATTEMPTS}."
            yield checks.Error(text, id="punctual.E003")

    def _queue(self, name: str) -> Queue:
        path = self._paths.get(name)
        queue = None if path is None else find_queue_by_path(path)
        if queue is None:
            raise ImproperlyConfigured(
                f"TASKS[{self.alias!r}]: the tasks' queue {name!r} stands for {path!r}, and there is no such queue."
            )
        return queue

    def _result(self, job: Job, task: Task[Any, Any], attempts: list[JobExecution]) -> TaskResult[Any]:
        starts = [attempt.started_at or attempt.claimed_at for attempt in attempts]
        workers = [str(attempt.worker_id) for attempt in attempts]
        status = _STATUSES[JobStatus(job.status)]
        if status == TaskResultStatus.RUNNING and job.locked_at is not None:
            starts, workers = [*starts, job.locked_at], [*workers, str(job.locked_by)]
        result: TaskResult[Any] = TaskResult(
            task=_as_enqueued(task, job),
            id=str(job.pk),
            status=status,
            enqueued_at=job.created_at,
            started_at=starts[0] if starts else None,
            finished_at=job.completed_at,
            last_attempted_at=starts[-1] if starts else None,
            args=job.payload["args"],
            kwargs=job.payload["kwargs"],
            backend=self.alias,
            errors=[_error(attempt) for attempt in attempts if attempt.status in _UNHAPPY],
            worker_ids=workers,
        )
        object.__setattr__(result, "_return_value", job.result)  # as the library itself does: results are frozen
        return result


def _as_enqueued(task: Task[Any, Any], job: Job) -> Task[Any, Any]:
    run_after = job.payload.get("run_after")
    try:
        return task.using(
            priority=job.priority,
            queue_name=job.payload["queue_name"],
            run_after=None if run_after is None else datetime.fromisoformat(run_after),
            backend=job.payload["backend"],
        )
    except InvalidTaskError:  # its queue is none of the backend's any more
        return task


def _error(attempt: JobExecution) -> TaskError:
    lines = (attempt.error_stack or "").rstrip().splitlines()
    if lines and lines[-1].startswith(NOTE):
        return TaskError(exception_class_path=lines[-1].removeprefix(NOTE), traceback="\n".join([*lines[:-1], ""]))
    path = f"{Unfinished.__module__}.{Unfinished.__qualname__}"
    return TaskError(exception_class_path=path, traceback=attempt.error_stack or attempt.error_message or "")
