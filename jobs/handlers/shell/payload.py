"""What shell.command takes, checked before anything is started."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

MAX_ARGUMENTS, MAX_ARGUMENT_BYTES, MAX_ALL_ARGUMENTS_BYTES = 1_000, 100_000, 500_000
MAX_VARIABLES, MAX_VARIABLE_BYTES = 100, 32_000
MAX_STDIN_BYTES = 1_048_576
DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S = 600.0, 86_400.0
_FIELDS = frozenset({"argv", "env", "stdin", "timeout_s", "cwd", "retry_codes", "permanent_codes"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
# Variables that make a program load or run something else than its arguments say.
_REFUSED = re.compile(
    r"(LD|DYLD|PYTHON|PERL|RUBY|NODE|NPM|BASH|GIT|MALLOC|XDG|APP|JAVA|_JAVA|JDK|PHP|LUA|GCONV|GLIBC|SSL|OPENSSL)(_.*)?"
    r"|PYTHON.*|PERL.*|RUBY.*|BASH.*|LUA.*|PATH|HOME|ENV|IFS|CDPATH|SHELL|SHELLOPTS|PS4|PROMPT_COMMAND|TMPDIR"
    r"|LOCPATH|NLSPATH|TERMINFO.*|HOSTALIASES|RES_OPTIONS|.*PAGER|.*EDITOR|VISUAL|.*_PRELOAD|CLASSPATH|GLOBIGNORE",
    re.IGNORECASE,
)


class BadPayload(ValueError):
    """The payload can not be run; names the field, never repeats its value."""


@dataclass(frozen=True, slots=True)
class Command:
    """A checked payload. Codes are exit codes; ``retry_codes`` None means: all that are not permanent."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: str | None
    timeout_s: float
    cwd: str | None
    retry_codes: frozenset[int] | None
    permanent_codes: frozenset[int]


def check_payload(payload: Any) -> Command:
    """Read a payload.

    Raises:
        BadPayload: names the first field that is wrong.
    """
    if not isinstance(payload, dict):
        raise BadPayload("payload: a JSON object is needed")
    if unknown := sorted(set(payload) - _FIELDS):
        raise BadPayload(f"payload.{unknown[0][:50]}: is not known; known are {', '.join(sorted(_FIELDS))}")
    stdin = payload.get("stdin")
    if stdin is not None:
        _text("stdin", stdin, MAX_STDIN_BYTES, may_hold_nul=True)
    retried = payload.get("retry_codes")
    return Command(
        _argv(payload.get("argv")), _env(payload.get("env", {})), stdin, _timeout(payload.get("timeout_s")),
        _cwd(payload.get("cwd")), None if retried is None else _codes("retry_codes", retried),
        _codes("permanent_codes", payload.get("permanent_codes", [])),
    )  # fmt: skip


def _text(field: str, value: Any, limit: int, *, may_hold_nul: bool = False) -> str:
    if not isinstance(value, str):
        raise BadPayload(f"payload.{field}: a text is needed")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise BadPayload(f"payload.{field}: holds half a character (a lone surrogate)") from None
    if size > limit:
        raise BadPayload(f"payload.{field}: is too long, at most {limit} bytes are taken")
    if "\0" in value and not may_hold_nul:
        raise BadPayload(f"payload.{field}: must not hold U+0000")
    return value


def _argv(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_ARGUMENTS:
        raise BadPayload(f"payload.argv: a list of 1 to {MAX_ARGUMENTS} texts is needed; the first is the program")
    found = tuple(_text(f"argv[{number}]", item, MAX_ARGUMENT_BYTES) for number, item in enumerate(value))
    if sum(len(item.encode()) for item in found) > MAX_ALL_ARGUMENTS_BYTES:
        raise BadPayload(f"payload.argv: is too long, at most {MAX_ALL_ARGUMENTS_BYTES} bytes are taken")
    return found


def _env(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MAX_VARIABLES:
        raise BadPayload(f"payload.env: an object of at most {MAX_VARIABLES} texts is needed")
    for name, text in value.items():
        if not _NAME.fullmatch(name):
            raise BadPayload("payload.env: a name is letters, digits and _, at most 200")
        if _REFUSED.fullmatch(name):
            raise BadPayload(f"payload.env.{name}: is refused, it can make a program run something else")
        _text(f"env.{name}", text, MAX_VARIABLE_BYTES)
    return dict(value)


def _timeout(value: Any) -> float:
    if value is None:
        return DEFAULT_TIMEOUT_S
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TIMEOUT_S:
        raise BadPayload(f"payload.timeout_s: a number above 0, at most {MAX_TIMEOUT_S:.0f}, is needed")
    return float(value)


def _cwd(value: Any) -> str | None:
    if value is None:
        return None
    text = _text("cwd", value, 4_000)
    if not os.path.isabs(text) or os.path.normpath(text) != text:
        raise BadPayload("payload.cwd: an absolute path without '.', '..' and a slash at the end is needed")
    return text


def _codes(field: str, value: Any) -> frozenset[int]:
    if not isinstance(value, list) or len(value) > 255:
        raise BadPayload(f"payload.{field}: a list of exit codes is needed")
    for code in value:
        if isinstance(code, bool) or not isinstance(code, int) or not 1 <= code <= 255:
            raise BadPayload(f"payload.{field}: exit codes from 1 to 255 are needed")
    return frozenset(value)
