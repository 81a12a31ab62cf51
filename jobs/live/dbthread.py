"""The thread in which the sockets' questions to the database are asked: one connection, however many sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, InterfaceError

from scheduler_project.lib.dbthreads import drop_connection

P = ParamSpec("P")
T = TypeVar("T")

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="events")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do ``work`` there; one after the other. Its connection stays, and is replaced after an error."""
    run = partial(_run, partial(work, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_thread, run)


def _run(work: Callable[[], T]) -> T:
    try:
        return work()
    except (DatabaseError, InterfaceError):
        drop_connection()
        raise
