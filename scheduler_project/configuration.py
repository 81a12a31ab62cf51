"""The page of all settings, docs/configuration.md: defaults and bounds as the code reads them, and what each is for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from scheduler_project.env import PREFIX, Variable

#: Paragraphs, headings, and a line "NAME: what it is for" for each variable.
NOTES = (Path(__file__).parent / "configuration.txt").read_text(encoding="utf-8")
_NOTE = re.compile(r"([A-Z_]+):(.*)")
_TABLE = "| variable | default | may be | |\n|---|---|---|---|"

#: What the code says of a default where it depends on something, or is no value.
DEFAULTS = {
    "DATABASE_URL": "unset: a private PostgreSQL",
    "DATABASE_DIRECT_URL": "as APP_DATABASE_URL",
    "SECRET_KEY": "in development only",
    "JWT_SECRET": "in development only",
    "ENVIRONMENT_BADGE": "as APP_ENV",
    "ALLOWED_HOSTS": "all; in production the names of loopback",
    "SSL_REDIRECT": "false; in production true",
    "SHELL_PATH": "as PATH",
    "EMBEDDED_PG_HOME": "in the checkout; for root under /var/lib",
    "EMBEDDED_PG_USER": "postgres, else nobody",
}
_ADDRESS = "an address such as postgresql://user:password@host:5432/database"
ALLOWED = {"DATABASE_URL": _ADDRESS, "DATABASE_DIRECT_URL": _ADDRESS}
#: Read by the private PostgreSQL itself, before any settings.
ELSEWHERE = {name: Variable("", "any text") for name in ("EMBEDDED_PG_HOME", "EMBEDDED_PG_USER")}


def page(read: Mapping[str, Variable]) -> str:
    """The page, of the variables that were read.

    Raises:
        LookupError: a variable is read and not described, or described and not read.
    """
    found = {**read, **ELSEWHERE}
    described = [match[1] for line in NOTES.splitlines() if (match := _NOTE.fullmatch(line))]
    if odd := set(described) ^ set(found) | {name for name in described if described.count(name) > 1}:
        raise LookupError(f"not both read and described once: {', '.join(sorted(odd))}")
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Mapping[str, Variable]) -> Iterator[str]:
    is_in_table = False
    for line in NOTES.splitlines():
        match = _NOTE.fullmatch(line)
        if match and not is_in_table:
            yield _TABLE
        is_in_table = match is not None
        yield _row(match[1], match[2].strip(), found[match[1]]) if match else line


def _row(name: str, note: str, variable: Variable) -> str:
    default = DEFAULTS.get(name) or (f"`{variable.default}`" if variable.default else "none")
    allowed = ALLOWED.get(name) or re.sub(r" (is|are) needed", "", variable.allowed)
    return f"| {PREFIX}{name} | {default} | {allowed} | {note} |"
