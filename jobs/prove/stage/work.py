"""Handlers of the proofs, known to their processes only; they leave traces that the engine knows nothing of."""

from __future__ import annotations

import os
import time
import urllib.request

from jobs.handlers import Discard, JobContext, handler
from scheduler_project.lib.sql import run
from scheduler_project.lib.statements import Statement

_TRACE = Statement(
    "prove_trace",
    """insert into prove_effects (job_id, attempt, fencing_number, kind, pid)
       values (%(job_id)s, %(attempt)s, %(fencing_number)s, %(kind)s, %(pid)s)""",
)

#: A sink that takes no write with a lower fencing number than it has seen, and notes if one got in all the same.
SINK = """
insert into prove_sink as sink (job_id, fencing_number)
values (%(job_id)s, %(fencing_number)s)
    on conflict (job_id) do update
   set fencing_number = excluded.fencing_number,
       went_back = sink.went_back or excluded.fencing_number < sink.fencing_number
 where sink.fencing_number < excluded.fencing_number
"""
LOOKS = "where sink.fencing_number < excluded.fencing_number"


def _trace(ctx: JobContext, kind: str) -> None:
    values = {"job_id": ctx.job_id, "attempt": ctx.attempt, "fencing_number": ctx.fencing_number, "kind": kind}
    run(_TRACE, {**values, "pid": os.getpid()})


@handler("prove.effect", is_internal=True)
def effect(ctx: JobContext) -> int:
    """Leave a trace at the start and one at the end, ``ms`` apart; hears nothing meanwhile, as much real work does."""
    _trace(ctx, "start")
    time.sleep(ctx.payload.get("ms", 0) / 1000)
    _trace(ctx, "end")
    return os.getpid()


@handler("prove.sink", is_internal=True)
def sink(ctx: JobContext) -> int:
    """As prove.effect, and at the end write into a sink that looks at the fencing number."""
    _trace(ctx, "start")
    time.sleep(ctx.payload.get("ms", 0) / 1000)
    run(Statement("prove_sink", SINK), {"job_id": ctx.job_id, "fencing_number": ctx.fencing_number})
    _trace(ctx, "end")
    return os.getpid()


@handler("prove.once", transactional=True, is_internal=True)
def once(ctx: JobContext) -> None:
    """Leave one trace, in the transaction in which the job is completed."""
    time.sleep(ctx.payload.get("ms", 0) / 1000)
    _trace(ctx, "end")


@handler("prove.polite", is_internal=True)
def polite(ctx: JobContext) -> None:
    """The same, but stops when it is asked to."""
    _trace(ctx, "start")
    ctx.sleep(ctx.payload.get("ms", 0) / 1000)
    _trace(ctx, "end")


@handler("prove.fate", is_internal=True)
def fate(ctx: JobContext) -> None:
    """Leave traces; fail for good where the payload says so."""
    _trace(ctx, "start")
    time.sleep(ctx.payload.get("ms", 0) / 1000)
    _trace(ctx, "end")
    if not ctx.payload["succeeds"]:
        raise Discard("drawn by lot")


@handler("prove.call", circuit=lambda payload: payload["name"], is_internal=True)
def call(ctx: JobContext) -> None:
    """Ask a server on this machine; whatever is not 200 is an error."""
    with urllib.request.urlopen(f"http://127.0.0.1:{ctx.payload['port']}/", timeout=10) as answer:
        answer.read()
