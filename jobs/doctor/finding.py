"""What a check has to say: how bad it is, what is the case, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    #: Works, but is worth a look.
    WARNING = "warning"
    #: Jobs do not run, run late, or may be lost.
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found; ``do`` is one instruction for people."""

    level: Level
    text: str
    do: str = ""


Findings = Iterator[Finding]


def problem(text: str, do: str) -> Finding:
    """Something that has to be mended."""
    return Finding(Level.PROBLEM, text, do)


def warning(text: str, do: str) -> Finding:
    """Something to look at."""
    return Finding(Level.WARNING, text, do)
