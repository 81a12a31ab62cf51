"""Built-in handlers that do little: to try the engine, to test it and to measure it."""

from __future__ import annotations

import asyncio
from typing import Any

from jobs.handlers.base import Discard, JobContext
from jobs.handlers.registry import handler

MAX_SLEEP_S = 86_400.0


@handler("noop")
def noop(ctx: JobContext) -> None:
    """Do nothing."""


@handler("noop.async")
async def noop_async(ctx: JobContext) -> None:
    """Do nothing, on the event loop."""


@handler("sleep")
def sleep(ctx: JobContext) -> None:
    """Sleep for ``seconds`` or ``ms`` of the payload, one second if it names neither."""
    payload = _object(ctx)
    ctx.sleep(_seconds(payload, "seconds") if "seconds" in payload else _seconds(payload, "ms", 1_000) / 1000)


@handler("sleep_*")
def sleep_ms(ctx: JobContext) -> dict[str, int]:
    """Sleep for the milliseconds in the job type, as ``sleep_250``."""
    text = ctx.job_type.removeprefix("sleep_")
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_SLEEP_S * 1000):
        raise Discard(f"{ctx.job_type!r} is not sleep_<milliseconds>, at most {MAX_SLEEP_S * 1000:.0f}")
    ctx.sleep(int(text) / 1000)
    return {"slept_ms": int(text)}


@handler("failing")
def failing(ctx: JobContext) -> None:
    """Fail with ``message``; with ``succeed_on_attempt`` only before that attempt."""
    payload = _object(ctx)
    good = payload.get("succeed_on_attempt")
    if isinstance(good, int) and ctx.attempt >= good:
        return
    raise RuntimeError(str(payload.get("message", "failing on purpose")))


@handler("test.echo")
def echo(ctx: JobContext) -> Any:
    """Return the payload."""
    return ctx.payload


@handler("test.delay")
async def delay(ctx: JobContext) -> dict[str, float]:
    """Sleep on the event loop for ``seconds``, one if not given."""
    seconds = _seconds(_object(ctx), "seconds", 1)
    await asyncio.sleep(seconds)
    return {"slept_s": seconds}


@handler("test.log")
def log(ctx: JobContext) -> dict[str, int]:
    """Log ``lines`` lines (three if not given) with progress."""
    payload = _object(ctx)
    lines = int(_seconds(payload, "lines", 3))
    for number in range(1, lines + 1):
        ctx.log(f"{payload.get('message', 'line')} {number} of {lines}")
        ctx.progress(100 * number / lines, f"line {number}")
        ctx.check()
    return {"lines": lines}


def _object(ctx: JobContext) -> dict[str, Any]:
    payload = ctx.payload
    if not isinstance(payload, dict):
        raise Discard(f"{ctx.job_type} takes a JSON object as payload, not {type(payload).__name__}")
    return payload


def _seconds(payload: dict[str, Any], name: str, default: float = 0) -> float:
    value = payload.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SLEEP_S * 1000:
        raise Discard(f"payload.{name} must be a number from 0 to {MAX_SLEEP_S * 1000:.0f}, not {value!r}")
    return float(value)
