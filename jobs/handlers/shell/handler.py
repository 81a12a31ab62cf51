"""The handler: is the command allowed, what does it get, and what its end means for the job."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import Any

from django.conf import settings

from jobs.handlers.base import JobContext, Permanent
from jobs.handlers.registry import handler
from jobs.handlers.shell.output import Output
from jobs.handlers.shell.payload import BadPayload, Command, check_payload
from jobs.handlers.shell.process import PAUSE_S, GuardFailed, run_guarded
from scheduler_project.lib.programs import NotAllowed, NotHere

_PRIVATE = re.compile(r"pass|secret|token|key|auth|cred|cookie|dsn|url", re.IGNORECASE)


class ShellFailed(Exception):
    """The command failed; another attempt may help. Begins with a stable code."""


@handler("shell.command")
async def shell(ctx: JobContext) -> dict[str, Any]:
    """Run the command that the payload describes; return exit code and output, truncated."""
    if not settings.SHELL_PROGRAMS:
        raise Permanent("not_allowed: shell.command is off; APP_SHELL_COMMANDS names the programs that may run")
    try:
        command = check_payload(ctx.payload)
    except BadPayload as error:
        raise Permanent(f"bad_payload: {error}") from None
    try:
        program = settings.SHELL_PROGRAMS.find(command.argv[0])
    except NotAllowed as error:
        raise Permanent(f"not_allowed: the program in payload.argv[0] {error}") from None
    except NotHere as error:  # another worker may have it
        raise ShellFailed(f"not_here: the program in payload.argv[0] {error}") from None
    return await _run(ctx, command, program)


async def _run(ctx: JobContext, command: Command, program: str) -> dict[str, Any]:
    env = environment(command)
    output = Output(ctx.log, [text for name, text in env.items() if _PRIVATE.search(name)])
    order = {
        "program": program, "argv": command.argv, "env": env, "stdin": command.stdin, "cwd": command.cwd,
        "timeout_s": command.timeout_s, "pause_s": PAUSE_S,
    }  # fmt: skip
    began = time.monotonic()
    try:
        report = await run_guarded(order, output, lambda: ctx.should_stop() in ("interrupted", "lost"))
    except (GuardFailed, OSError) as error:
        raise ShellFailed(f"not_started: {error}") from None
    finally:
        output.finish()
    _judge(command, report, output)
    return {
        "exit_code": 0,
        "output": output.kept(),
        "output_bytes": output.total_bytes,
        "cut_bytes": output.cut_bytes,
        "duration_ms": round((time.monotonic() - began) * 1000),
    }


def environment(command: Command) -> dict[str, str]:
    """What the command gets: the listed variables of the worker, then those of the payload."""
    passed = {name: os.environ[name] for name in settings.SHELL_ENV if name in os.environ}
    return {**passed, "PATH": settings.SHELL_PATH, **command.env}


def _judge(command: Command, report: dict[str, Any], output: Output) -> None:
    """Raise what the end means; nothing for success."""
    if "error" in report:
        problem = f"not_started: {report['error']}"
        raise Permanent(problem) if report["is_final"] else ShellFailed(problem)
    code, tail = int(report["code"]), output.last_lines()
    last = f"; its last lines:\n{tail}" if tail else ""
    if report["why"] == "timeout":
        raise ShellFailed(f"timeout: the command did not end within {command.timeout_s:g} s{last}")
    if report["why"] == "stopped":
        raise ShellFailed(f"stopped: somebody ended the process that watches over the command{last}")
    if code < 0:
        raise ShellFailed(f"killed: the command was ended by {_signal_name(-code)}{last}")
    if code in command.permanent_codes or (
        code and command.retry_codes is not None and code not in command.retry_codes
    ):
        raise Permanent(f"exit_code: the command ended with {code}{last}")
    if code:
        raise ShellFailed(f"exit_code: the command ended with {code}{last}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
