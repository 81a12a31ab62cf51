"""Pure: what listeners are told, and which of it they asked for. Texts are made once and shared by all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

RESYNC = '{"type":"resync"}'
PING = '{"type":"ping"}'
_FIELDS = ("project", "queue", "job")
MAX_SUBSETS = 100
MAX_JOINED = 256


@dataclass(frozen=True, slots=True)
class Subset:
    """Part of what a listener may see; empty fields stand for everything."""

    project: str = ""
    queue: str = ""
    job: str = ""

    @classmethod
    def of(cls, fields: object) -> Subset:
        """From what a listener sent. Raises ValueError, saying what is wrong."""
        if not isinstance(fields, Mapping):
            raise ValueError("a subset is an object with project, queue or job")
        if unknown := sorted(str(name) for name in fields.keys() - set(_FIELDS)):
            raise ValueError(f"{unknown[0][:40]} is not a field of a subset: project, queue and job are")
        return cls(**{name: _id(name, value) for name, value in fields.items()})

    def covers(self, project: str | None, queue: str | None) -> bool:
        """Is anything of this queue in it?"""
        return (not self.project or self.project == project) and (not self.queue or self.queue == queue)


@dataclass(frozen=True, slots=True)
class News:
    """Messages about one project, or one queue of it.

    Attributes:
        project: None for what concerns everybody, as a worker that serves all.
        items: a job's id, empty for other topics, and the text.
    """

    project: str | None
    queue: str | None
    items: Sequence[tuple[str, str]]

    def for_subsets(self, subsets: Iterable[Subset]) -> list[str]:
        """The texts that are in one of the subsets, in their order."""
        covering = [subset for subset in subsets if subset.covers(self.project, self.queue)]
        if any(not subset.job for subset in covering):
            return [text for _, text in self.items]
        jobs = {subset.job for subset in covering}
        return [text for job, text in self.items if job in jobs]


def news_of_jobs(body: Mapping[str, Any], project: str, at: str) -> News:
    """From a message about jobs of one queue."""
    queue = body["q"]
    items = [
        (job, f'{{"type":"job","project":"{project}","queue":"{queue}","job":"{job}","status":"{status}","at":"{at}"}}')
        for status, *jobs in body["j"]
        for job in jobs
    ]
    return News(project, queue, items)


def news_of_other(body: Mapping[str, Any], at: str) -> News:
    """From a message about anything else."""
    topic, subject = body["t"], body["id"]
    said = {"type": topic, "project": body["p"], topic: subject, "event": body["e"], "at": at}
    return News(body["p"], subject if topic == "queue" else None, [("", json.dumps(said, separators=(",", ":")))])


def joined(texts: Sequence[str]) -> str:
    """One frame for what is waiting: a message as it is, several as a batch."""
    return texts[0] if len(texts) == 1 else f'{{"type":"batch","events":[{",".join(texts)}]}}'


def error(message: str) -> str:
    """The answer to something that can not be done."""
    return json.dumps({"type": "error", "message": message})


def subscribed(subsets: Iterable[Subset]) -> str:
    """The answer to a change of the subsets: all that there are now."""
    shown = [{name: getattr(subset, name) for name in _FIELDS if getattr(subset, name)} for subset in subsets]
    return json.dumps({"type": "subscribed", "subsets": shown})


def _id(name: str, value: object) -> str:
    try:
        return str(UUID(value)) if isinstance(value, str) and len(value) == 36 else _refuse(name)
    except ValueError:
        return _refuse(name)


def _refuse(name: str) -> str:
    raise ValueError(f"{name} must be an id")
