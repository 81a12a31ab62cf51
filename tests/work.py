"""Handlers for tests: they leave traces in the table ``test_effects`` that the engine knows nothing of."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
import urllib.request

from django.conf import settings
from django.db import connection, transaction

from jobs.handlers import JobContext, handler
from jobs.lease import assert_lease
from jobs.models import Job

CREATE_EFFECTS = """
create unlogged table if not exists test_effects (
  job_id uuid, attempt int, fencing_number bigint, kind text, pid int, at timestamptz default clock_timestamp()
)
"""


def effect_of(ctx: JobContext, kind: str) -> None:
    now = time.time()  # when it was done, not when a busy machine came to write it down
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into test_effects (job_id, attempt, fencing_number, kind, pid, at)"
            " values (%s, %s, %s, %s, %s, to_timestamp(%s))",
            [ctx.job_id, ctx.attempt, ctx.fencing_number, kind, os.getpid(), now],
        )


@handler("effect")
def effect(ctx: JobContext) -> dict[str, int]:
    """Record the start, sleep ``ms``, record the end; return who did it."""
    effect_of(ctx, "start")
    time.sleep(ctx.payload.get("ms", 0) / 1000)
    effect_of(ctx, "end")
    return {"pid": os.getpid()}


@handler("effect.polite")
def polite(ctx: JobContext) -> None:
    """As effect, but stops when asked."""
    effect_of(ctx, "start")
    ctx.sleep(ctx.payload.get("ms", 0) / 1000)
    effect_of(ctx, "end")


@handler("walk")
def walk(ctx: JobContext) -> int:
    """Go through many rows in pieces, outside of any transaction."""
    return len(set(Job.objects.order_by("pk").values_list("pk", flat=True).iterator(chunk_size=10)))


@handler("poison")
def poison(ctx: JobContext) -> None:
    """Take the whole process along."""
    effect_of(ctx, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@handler("busy")
def busy(ctx: JobContext) -> None:
    """Compute in Python for ``ms`` without pause."""
    effect_of(ctx, "start")
    until = time.monotonic() + ctx.payload["ms"] / 1000
    while time.monotonic() < until:
        pass


@handler("hog")
def hog(ctx: JobContext) -> None:
    """Hold the interpreter in one call for seconds: a regular expression that backtracks."""
    effect_of(ctx, "start")
    re.match(r"(a+)+$", "a" * ctx.payload["size"] + "b")


@handler("sum")
def sum_of_parents(ctx: JobContext) -> int:
    """Add up what the parents returned."""
    return sum(ctx.parent_results().values())


@handler("call", circuit=lambda payload: payload["name"])
def call(ctx: JobContext) -> None:
    """Ask a server on this machine; whatever is not 200 is an error."""
    with urllib.request.urlopen(f"http://127.0.0.1:{ctx.payload['port']}/", timeout=10) as answer:
        answer.read()


@handler("blocked")
def blocked(ctx: JobContext) -> None:
    """Sit in one call of the system that hears nothing."""
    effect_of(ctx, "start")
    time.sleep(ctx.payload["ms"] / 1000)
    effect_of(ctx, "end")


@handler("stubborn")
def stubborn(ctx: JobContext) -> None:
    """Go on whatever is raised."""
    effect_of(ctx, "start")
    until = time.monotonic() + ctx.payload["ms"] / 1000
    while time.monotonic() < until:
        with contextlib.suppress(BaseException):
            time.sleep(0.01)


@handler("stubborn.async")
async def stubborn_async(ctx: JobContext) -> None:
    """The same on the event loop."""
    until = time.monotonic() + ctx.payload["ms"] / 1000
    while time.monotonic() < until:
        with contextlib.suppress(BaseException):
            await asyncio.sleep(0.01)


@handler("chatty")
def chatty(ctx: JobContext) -> None:
    """Log a line each 50 ms for ``ms``."""
    for number in range(ctx.payload["ms"] // 50):
        ctx.log(f"line {number}")
        ctx.sleep(0.05)


@handler("query.log")
def query_log(ctx: JobContext) -> dict[str, object]:
    """What Django keeps of the queries it has made."""
    with connection.cursor() as cursor:
        cursor.execute("select 1")
    return {"debug": settings.DEBUG, "kept": len(connection.queries_log)}


@handler("booking", transactional=True)
def booking(ctx: JobContext) -> None:
    """Write, then take ``ms``: time enough to be frozen or killed between the two."""
    effect_of(ctx, "booked")
    time.sleep(ctx.payload["ms"] / 1000)


@handler("booking.loose")
def loose_booking(ctx: JobContext) -> None:
    """The same outside of any transaction."""
    effect_of(ctx, "booked")
    time.sleep(ctx.payload["ms"] / 1000)


@handler("booking.own")
def own_booking(ctx: JobContext) -> None:
    """The same in a transaction of its own, which asks for the lease before it commits."""
    with transaction.atomic():
        effect_of(ctx, "booked")
        time.sleep(ctx.payload["ms"] / 1000)
        assert_lease(ctx)
