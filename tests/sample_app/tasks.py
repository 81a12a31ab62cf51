"""Tasks of a user's app, as django-tasks has them written."""

from __future__ import annotations

import asyncio
from typing import Any

from django_tasks import TaskContext, task

from jobs.handlers import RetryAfter

calls: list[Any] = []


class Refused(Exception):
    """An error of the app's own."""


@task
def add(a: int, b: int = 2) -> int:
    calls.append((a, b))
    return a + b


@task()
async def add_slowly(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@task(takes_context=True)
def which_attempt(context: TaskContext, fail_before: int = 0) -> list[Any]:
    if context.attempt <= fail_before:
        raise Refused(f"attempt {context.attempt}\nover two lines")
    return [context.attempt, context.task_result.id, context.task_result.status]


@task(priority=7)
def fail(message: str) -> None:
    raise ValueError(message)


@task
def later() -> None:
    raise RetryAfter(0, "not yet")


@task
def unstorable() -> Any:
    return object()


def no_task(a: int) -> None:
    calls.append("must not be called")


alias_of_add = add
