"""What can go wrong with the embedded PostgreSQL, said in one line with what to do about it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

ELSEWHERE = (
    "Set APP_EMBEDDED_PG_HOME to a folder you can write to, or APP_DATABASE_URL to a PostgreSQL that runs already."
)
_CAUSE = re.compile(r"\b(?:FATAL|PANIC|ERROR|error):\s+|\bcould not\b|No space left")
_NO_SPACE = os.strerror(errno.ENOSPC)
_PREFIX = re.compile(r"^.*?\b(?:FATAL|PANIC|ERROR|error):\s+")
_HINT = re.compile(r"\bHINT:\s+(.*)")


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL can not do what was asked; the message is one line for the user."""


def no_space(folder: Path) -> EmbeddedPostgresError:
    """The disk is full."""
    return EmbeddedPostgresError(f"No space left for the embedded PostgreSQL in {folder}. Free some, or: {ELSEWHERE}")


@contextlib.contextmanager
def said_clearly(folder: Path) -> Iterator[None]:
    """Turn the operating system's refusals inside the block into an EmbeddedPostgresError about ``folder``."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT} or _NO_SPACE in str(error):  # a tree's copy has no errno
            raise no_space(folder) from error
        where, why = error.filename or folder, error.strerror or error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            said = f"The embedded PostgreSQL can not use {where}: {why}. {ELSEWHERE}"
        else:
            said = f"The embedded PostgreSQL failed at {where}: {why}."
        raise EmbeddedPostgresError(said) from error


def cause_of(output: str) -> str:
    """The line of a PostgreSQL program's output that says why it failed, with its hint if there is one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return "it gave no reason"
    cause = next((line for line in lines if _CAUSE.search(line)), lines[-1])
    hint = _HINT.search(output)
    return _PREFIX.sub("", cause) + (f" ({hint.group(1).strip()})" if hint else "")
