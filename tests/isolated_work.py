"""Handlers for tests that run in a process of their own, and what they may do to it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

from jobs.handlers import JobContext, handler
from tests.work import effect_of


@handler("isolated", isolation="process")
def isolated_sync(ctx: JobContext) -> dict[str, Any]:
    """Say something, say how far it is, use the database, return who did it."""
    effect_of(ctx, "start")
    ctx.log(f"payload {ctx.payload['n']}", "warning")
    ctx.progress(50, "half")
    ctx.sleep(ctx.payload.get("ms", 0) / 1000)
    effect_of(ctx, "end")
    return {"pid": os.getpid(), "worker": os.getppid(), "n": ctx.payload["n"], "attempt": ctx.attempt}


@handler("isolated.async", isolation="process")
async def isolated_async(ctx: JobContext) -> int:
    """The same on an event loop of its own."""
    await asyncio.sleep(ctx.payload.get("ms", 0) / 1000)
    return os.getpid()


@handler("isolated.fails", isolation="process")
def fails(ctx: JobContext) -> None:
    """Raise."""
    raise ValueError("no such customer")


@handler("isolated.segfault", isolation="process")
def segfault(ctx: JobContext) -> None:
    """Read what is not there."""
    effect_of(ctx, "start")
    ctypes.string_at(0)


@handler("isolated.glutton", isolation="process", memory_mb=256)
def glutton(ctx: JobContext) -> None:
    """Take memory without end."""
    effect_of(ctx, "start")
    hoard = []
    while True:
        hoard.append(bytearray(16 * 2**20))


@handler("isolated.hog", isolation="process")
def hog(ctx: JobContext) -> None:
    """Hold the interpreter in one call, practically for ever."""
    effect_of(ctx, "start")
    re.match(r"(a+)+$", "a" * 60 + "b")


@handler("isolated.exit", isolation="process")
def leave(ctx: JobContext) -> None:
    """End the process without a word."""
    os._exit(7)


@handler("isolated.killed", isolation="process")
def killed(ctx: JobContext) -> None:
    """End it by the signal that nobody can catch."""
    effect_of(ctx, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@handler("isolated.stubborn", isolation="process")
def stubborn(ctx: JobContext) -> None:
    """Go on whatever is raised, with a program of its own that goes on too."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    ctx.progress(1, str(program.pid))
    effect_of(ctx, "start")
    until = time.monotonic() + 600
    while time.monotonic() < until:
        with contextlib.suppress(BaseException):
            time.sleep(0.05)


@handler("isolated.blocked", isolation="process")
def blocked(ctx: JobContext) -> None:
    """Sit in a call of the system, and say what it was thrown out by."""
    effect_of(ctx, "start")
    try:
        time.sleep(600)
    except BaseException:
        effect_of(ctx, "thrown")
        raise
