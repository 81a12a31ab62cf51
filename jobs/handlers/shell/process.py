"""The worker's side of the guard: starts it, reads what comes, ends it; never lets a command outlive its handler."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from jobs.handlers.shell.output import Output

GUARD = Path(__file__).with_name("guard.py")
#: From SIGTERM to SIGKILL; at a worker's shutdown the worker itself has less time.
PAUSE_S, SHORT_PAUSE_S = 2.0, 0.25
CHUNK_BYTES, MAX_REPORT_BYTES = 65_536, 65_536
#: A command that writes faster is slowed: its flood must not take the event loop from other jobs.
MAX_BYTES_PER_S = 67_108_864
#: What still holds the pipe after everything was killed (another user's process, say) is not waited for longer.
DRAIN_S = 1.0
#: Beyond the pauses: how long a guard may take to report.
GUARD_S = 10.0


class GuardFailed(Exception):
    """The guard ended without a report."""


async def run_guarded(order: dict[str, Any], output: Output, is_hurried: Any) -> dict[str, Any]:
    """Run a command under a guard; the guard's report.

    Args:
        order: what the guard takes.
        output: takes what the command writes.
        is_hurried: asked when the handler is cancelled: is there only a moment left?

    Raises:
        GuardFailed: no report came.
        OSError: no process could be started.
        asyncio.CancelledError: after all that the command had started was ended.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-X", "utf8", str(GUARD),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in ("LD_LIBRARY_PATH", "TMPDIR") if name in os.environ},
        cwd="/", start_new_session=True, limit=CHUNK_BYTES,
    )  # fmt: skip
    assert process.stdin  # noqa: S101 - pipes were asked for
    assert process.stdout  # noqa: S101
    assert process.stderr  # noqa: S101
    pump = asyncio.create_task(_pump(process.stdout, output))
    report = asyncio.create_task(_read_report(process.stderr))
    try:
        process.stdin.write(json.dumps(order).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await process.stdin.drain()
        # The guard itself keeps the timeout, also for a worker that is frozen.
        await asyncio.wait([report], timeout=order["timeout_s"] + order["pause_s"] + GUARD_S)
    except asyncio.CancelledError:
        if is_hurried():
            process.stdin.write(f"{SHORT_PAUSE_S}\n".encode())
        process.stdin.close()
        await asyncio.wait([report], timeout=PAUSE_S + GUARD_S)
        raise
    finally:
        await _clear_away(process, pump, report)
    return _report_of(report)


async def _clear_away(process: asyncio.subprocess.Process, *readers: asyncio.Task[Any]) -> None:
    """Read what is left in the pipes; leave neither process nor pipe behind."""
    if process.stdin:
        process.stdin.close()
    await asyncio.wait(readers, timeout=DRAIN_S)
    if any(not reader.done() for reader in readers):
        with contextlib.suppress(ProcessLookupError):
            process.kill()  # if the guard hangs; the command dies with it
        for reader in readers:
            reader.cancel()
        for number in (1, 2):  # somebody still holds them, and would keep us waiting
            pipe = process._transport.get_pipe_transport(number)  # type: ignore[attr-defined]
            if pipe is not None:
                pipe.close()
    await process.wait()


def _report_of(task: asyncio.Task[bytes]) -> dict[str, Any]:
    lines = task.result().splitlines() if task.done() and not task.cancelled() else []
    try:
        found = json.loads(lines[-1])
    except (IndexError, ValueError):
        raise GuardFailed("the process that watches over the command ended without a report") from None
    return dict(found)


async def _pump(stream: asyncio.StreamReader, output: Output) -> None:
    began, read = time.monotonic(), 0
    while chunk := await stream.read(CHUNK_BYTES):
        output.feed(chunk)
        read += len(chunk)
        ahead_s = read / MAX_BYTES_PER_S - (time.monotonic() - began)
        await asyncio.sleep(max(0.0, ahead_s) if ahead_s > 0.01 else 0)


async def _read_report(stream: asyncio.StreamReader) -> bytes:
    found = bytearray()
    while chunk := await stream.read(CHUNK_BYTES):
        found += chunk
        del found[:-MAX_REPORT_BYTES]
    return bytes(found)
