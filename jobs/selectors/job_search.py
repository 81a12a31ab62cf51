"""The words of the search box over jobs: each of them is answered by an index, or by looking through a bounded number.

``type:mail.send queue:mail status:failed window:7d error:"time out"``. All must hold; a word of its own is the
beginning of a job's id if it looks like one, else a job type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from jobs.new_job import MAX_TYPE_CHARS
from jobs.states import JobStatus
from scheduler_project.lib.errors import ValidationFailed

#: Length of a window in seconds; None is no bound.
WINDOWS: dict[str, int | None] = {"1h": 3_600, "24h": 86_400, "7d": 7 * 86_400, "all": None}
MAX_CHARS = 1_000
#: Shorter ones are many windows of time in one.
SHORTEST_ID = 4
HELP = (
    ("queue:mail", "in this queue"),
    ("type:mail.send", "of this type; needs a queue too, if there are several"),
    ("status:failed", "one of " + ", ".join(JobStatus.values)),
    ("id:01a22c59", "whose id is this or begins so; from all time"),
    ('error:"time out"', "that failed with an error that has this in it; among the newest failures"),
    ("window:7d", "submitted within " + ", ".join(WINDOWS)),
)
_SAME = {"state": "status"}
_TERM = re.compile(r'(?:([^\s:"]+):)?("[^"]*"|[^\s"]*)("?)(?:\s+|$)')
_ID = re.compile(r"[0-9a-f-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for; empty is anything. ``queue`` is a name, which nobody has looked up."""

    queue: str = ""
    type: str = ""
    status: str = ""
    id: str = ""
    error: str = ""
    window: str = ""


_WORDS = tuple(field.name for field in fields(Search))
_ALLOWED = f"Allowed: {', '.join(f'{word}:' for word in _WORDS)}"


def parse(text: str) -> Search:
    """Read what was typed.

    Raises:
        ValidationFailed: naming the part that can not be meant, and what is allowed.
    """
    if len(text) > MAX_CHARS:
        raise _bad(f"no more than {MAX_CHARS:,} characters")
    text, found, at = text.replace("\x00", "").strip(), {}, 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None or match[3]:
            raise _bad(f'{text[at : at + 40]}: a quote stands around a whole value, as in error:"time out"')
        at = match.end()
        word, value = _meant(match[1], match[2])
        if word in found:
            raise _bad(f"{word}: stands there twice; one value each")
        found[word] = value
    if "id" in found:
        found.setdefault("window", "all")
    return Search(**found)


def spell(search: Search) -> str:
    """What was looked for, as it can be typed."""
    return " ".join(f"{name}:{_quoted(value)}" for name in _WORDS if (value := getattr(search, name)))


def as_id_prefix(value: str) -> str | None:
    """The hexadecimal digits that an id begins with; None if it can be no id."""
    digits = value.lower().replace("-", "")
    return digits if _ID.fullmatch(value.lower()) and SHORTEST_ID <= len(digits) <= 32 else None


def _meant(name: str | None, given: str) -> tuple[str, str]:
    value = given.strip('"').strip()
    if name is None:
        word = "id" if value.startswith("0") and as_id_prefix(value) else "type"
    else:
        word = _SAME.get(name.lower(), name.lower())
    if word not in _WORDS:
        raise _bad(f'"{name}:" is no word to search by. {_ALLOWED}')
    if not value:
        raise _bad(f"{word}: needs a value")
    return word, _checked(word, value)


def _checked(word: str, value: str) -> str:
    choices = {"status": JobStatus.values, "window": list(WINDOWS)}.get(word)
    if choices is not None:
        if value.lower() not in choices:
            raise _bad(f'{word}: is one of {", ".join(choices)}, not "{value}"')
        return value.lower()
    if word == "id":
        digits = as_id_prefix(value)
        if digits is None:
            raise _bad(f'id: takes {SHORTEST_ID} to 32 of 0-9 and a-f, dashes or not, not "{value}"')
        return digits
    most = MAX_TYPE_CHARS
    if len(value) > most:
        raise _bad(f"{word}: takes no more than {most} characters")
    return value


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"\s", value) else value


def _bad(message: str) -> ValidationFailed:
    return ValidationFailed.of("q", message)
