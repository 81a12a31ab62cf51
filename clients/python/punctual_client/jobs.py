"""Jobs as they are submitted and as they come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from punctual_client.errors import PunctualError, error_of

TERMINAL = frozenset({"completed", "failed", "dead_letter", "cancelled"})


@dataclass(frozen=True)
class NewJob:
    """A job to submit with ``submit_many``; ``options`` are further fields of the API, such as priority or run_at."""

    job_type: str
    payload: Any = field(default_factory=dict)
    queue: str | None = None
    idempotency_key: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """A job as the API shows it; ``raw`` is all of it, with fields this version does not know.

    ``payload`` and ``result`` come with ``get`` and ``wait``; lists and receipts leave them out.
    """

    id: str
    status: str
    raw: Mapping[str, Any] = field(repr=False)
    job_type: str = ""
    queue_id: str = ""
    priority: int = 0
    attempt: int = 0
    idempotency_key: str | None = None
    run_at: datetime | None = None
    created_at: datetime | None = None
    completed_at: datetime | None = None
    progress_percent: int | None = None
    error_message: str | None = None
    payload: Any = field(default=None, repr=False)
    result: Any = field(default=None, repr=False)
    is_replay: bool = False

    @property
    def has_ended(self) -> bool:
        """Is it in a state that no worker will change?"""
        return self.status in TERMINAL

    @classmethod
    def of(cls, raw: Mapping[str, Any], *, is_replay: bool = False) -> Job:
        """From the API's JSON; fields that are missing keep their defaults."""
        known: dict[str, Any] = {name: raw[name] for name in _PLAIN if raw.get(name) is not None}
        known |= {name: _time(raw[name]) for name in _TIMES if raw.get(name) is not None}
        return cls(str(raw["id"]), str(raw["status"]), raw, **known, is_replay=is_replay)


@dataclass(frozen=True)
class BulkItem:
    """What became of one job of ``submit_many``: its id, or what is wrong with it. Not ``is_new``: the key was used."""

    index: int
    id: str | None
    is_new: bool
    error: PunctualError | None
    raw: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, index: int, raw: Mapping[str, Any]) -> BulkItem:
        """From the API's JSON."""
        error = error_of(int(raw["status"]), raw) if "error" in raw else None
        return cls(index, raw.get("id"), bool(raw.get("is_new", False)), error, raw)


_PLAIN = (
    "job_type", "queue_id", "priority", "attempt", "idempotency_key", "progress_percent", "error_message", "payload",
    "result",
)  # fmt: skip
_TIMES = ("run_at", "created_at", "completed_at")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
