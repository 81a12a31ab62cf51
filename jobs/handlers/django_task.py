"""Runs functions under ``@task`` of django-tasks: sync ones in a thread, async ones on the event loop.

Only what is a task already runs: a function that its own module has put under ``@task``, in a module that this process
has read by itself (``tasks`` of an installed app, or one of APP_HANDLER_MODULES). A name in a payload imports nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from uuid import UUID

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from jobs.handlers.base import BadPayload, JobContext
from jobs.handlers.registry import handler
from scheduler_project.lib import logs

log = logs.get(__name__)

TASK, ASYNC_TASK = "django.task", "django.task.async"
#: Stands before the path of the exception's class in a note to it: the last line of the attempt's traceback.
NOTE = "raised by a task as "
PAYLOAD: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "description": "module.function"},
        "args": {"type": "array"},
        "kwargs": {"type": "object"},
        "backend": {"type": "string"},
        "queue_name": {"type": "string"},
        "run_after": {"type": ["string", "null"], "format": "date-time"},
    },
    "required": ["task", "args", "kwargs", "backend", "queue_name"],
}


@handler(TASK, payload=PAYLOAD, is_internal=True)
def run_task(ctx: JobContext) -> Any:
    """Run a task function of Django's Tasks API."""
    attempt = _Attempt(ctx)
    with attempt:
        attempt.returned(attempt.task.call(*attempt.args, **attempt.kwargs))
    return attempt.value


@handler(ASYNC_TASK, payload=PAYLOAD, is_internal=True)
async def run_async_task(ctx: JobContext) -> Any:
    """Run an async task function of Django's Tasks API."""
    attempt = _Attempt(ctx)
    with attempt:
        attempt.returned(await attempt.task.acall(*attempt.args, **attempt.kwargs))
    return attempt.value


class _Attempt:
    """One call of a task, and what its listeners hear of it."""

    def __init__(self, ctx: JobContext) -> None:
        from django_tasks import TaskContext, TaskResult, TaskResultStatus

        payload = ctx.payload
        task = find_task(payload["task"])
        if task is None:
            raise BadPayload(f"{payload['task']!r} is no @task function that this worker has read")
        self.task: Any = task
        started = datetime.now(UTC)  # shown to listeners only
        self.result: Any = TaskResult(
            task=task,
            id=ctx.job_id,
            status=TaskResultStatus.RUNNING,
            enqueued_at=datetime.fromtimestamp((UUID(ctx.job_id).int >> 80) / 1000, UTC),
            started_at=started,
            last_attempted_at=started,
            finished_at=None,
            args=payload["args"],
            kwargs=payload["kwargs"],
            backend=payload["backend"],
            errors=[],
            # One for each attempt; who had the earlier ones is told by ``refresh``.
            worker_ids=[f"{socket.gethostname()}:{os.getpid()}"] * ctx.attempt,
        )
        context = [TaskContext(task_result=self.result)] if task.takes_context else []
        self.args, self.kwargs = [*context, *payload["args"]], payload["kwargs"]
        self.value: Any = None

    def returned(self, value: Any) -> None:
        """The call came back."""
        from django_tasks.utils import normalize_json

        self.value = normalize_json(value)

    def __enter__(self) -> None:
        from django_tasks.signals import task_started

        task_started.send_robust(type(self.task.get_backend()), task_result=self.result)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        from django_tasks import TaskResultStatus
        from django_tasks.base import TaskError
        from django_tasks.signals import task_finished
        from django_tasks.utils import get_exception_traceback

        status = TaskResultStatus.SUCCESSFUL
        if error is not None:
            status, path = TaskResultStatus.FAILED, f"{type(error).__module__}.{type(error).__qualname__}"
            self.result.errors.append(TaskError(exception_class_path=path, traceback=get_exception_traceback(error)))
            with contextlib.suppress(Exception):
                error.add_note(NOTE + path)
        ended = {"status": status, "finished_at": datetime.now(UTC), "_return_value": self.value}
        for name, value in ended.items():
            object.__setattr__(self.result, name, value)  # as the library itself does: results are frozen
        task_finished.send_robust(type(self.task.get_backend()), task_result=self.result)


def find_task(path: str) -> Any:
    """The task of a function's path, None if there is none such. Imports nothing but the apps' ``tasks``."""
    from django_tasks.base import Task

    _modules.read()
    module, _, name = path.rpartition(".")
    found = getattr(sys.modules.get(module), name, None) if module else None
    return found if isinstance(found, Task) and found.module_path == path else None


class _Modules:
    """The ``tasks`` modules of the installed apps, read once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_read = False

    def read(self) -> None:
        with self._lock:
            if not self._is_read:
                self._is_read = True
                for app in apps.get_app_configs():
                    if module_has_submodule(app.module, "tasks"):
                        _read(f"{app.name}.tasks")


def _read(name: str) -> None:
    try:
        import_module(name)
    except Exception as error:  # noqa: BLE001 - boundary: one app's module must not keep the others' tasks
        log.error("tasks_not_read", module=name, error=f"{type(error).__name__}: {error}"[:500])


_modules = _Modules()
