"""The leases of workers over HTTP: proved by job and token, and only inside the project of the worker's key."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from jobs.decisions import storable
from jobs.lifecycle.exchange import Handover, LogLine, Progress, exchange
from jobs.lifecycle.extend import Held, extend_leases
from jobs.models import Job
from jobs.services.remote.secrets import scrubbers
from scheduler_project.lib import logs
from scheduler_project.lib.scrub import Scrubber

MAX_LINE_CHARS, MAX_NOTE_CHARS = 8_000, 200


class Proof(NamedTuple):
    """What a worker shows to write on an attempt."""

    job_id: UUID
    token: UUID


class Attempt(NamedTuple):
    """A running attempt as the database has it."""

    attempt_count: int
    claimed_at: str
    worker_id: str
    queue_id: str
    lease_s: int


class Line(NamedTuple):
    """A line of a job's log, written ``ago_ms`` before it was sent."""

    level: str
    message: str
    ago_ms: float


@dataclass(frozen=True, slots=True)
class Sign:
    """What a worker says of one lease it holds."""

    proof: Proof
    percent: int | None = None
    note: str | None = None
    lines: Sequence[Line] = ()


class Answer(NamedTuple):
    """What a worker hears of one lease."""

    status: str
    lease_s: int


LOST = Answer("lost", 0)


def keep(project_id: UUID, signs: Sequence[Sign]) -> list[Answer]:
    """Store what was logged and how far it is, and extend the leases; ``ok``, ``cancel_requested`` or ``lost``."""
    attempts = running(project_id, {sign.proof for sign in signs})
    held = [sign for sign in signs if sign.proof in attempts]
    held_and_clean = _scrubbed(project_id, held)
    news = Handover(lines=_lines(held_and_clean), progress=_progress(held_and_clean), now=0.0)
    if news:
        exchange(news)
    leases = sorted({Held(*_texts(sign.proof), attempts[sign.proof].lease_s) for sign in held})
    kept = extend_leases(leases)
    return [_answer(sign.proof, attempts, kept) for sign in signs]


def _answer(proof: Proof, attempts: dict[Proof, Attempt], kept: dict[str, bool]) -> Answer:
    is_cancelled = kept.get(str(proof.token)) if proof in attempts else None
    if is_cancelled is None:
        return LOST
    return Answer("cancel_requested" if is_cancelled else "ok", attempts[proof].lease_s)


def _scrubbed(project_id: UUID, signs: Sequence[Sign]) -> list[Sign]:
    """Without the secrets of the jobs' payloads."""
    found = scrubbers(project_id, {sign.proof.job_id for sign in signs if sign.lines or sign.note})
    return [_without(found[s.proof.job_id], s) if s.proof.job_id in found else s for s in signs]


def _without(scrub: Scrubber, sign: Sign) -> Sign:
    lines = [line._replace(message=scrub(storable(line.message, 4 * MAX_LINE_CHARS))) for line in sign.lines]
    return replace(sign, note=None if sign.note is None else scrub(sign.note), lines=lines)


def _lines(signs: Sequence[Sign]) -> list[LogLine]:
    return [
        LogLine(*_texts(sign.proof), -line.ago_ms / 1000, line.level, _clean(line.message))
        for sign in signs
        for line in sign.lines
    ]


def _progress(signs: Sequence[Sign]) -> list[Progress]:
    return [Progress(*_texts(s.proof), s.percent, _note(s.note)) for s in signs if s.percent is not None]


def _note(text: str | None) -> str | None:
    return None if text is None else _clean(text)[:MAX_NOTE_CHARS]


def _texts(proof: Proof) -> tuple[str, str]:
    return str(proof.job_id), str(proof.token)


def _clean(text: str) -> str:
    return logs.redact(storable(text, MAX_LINE_CHARS))


def running(project_id: UUID, proofs: Collection[Proof]) -> dict[Proof, Attempt]:
    """The attempts that these proofs are for; what is missing has been lost or was never this project's."""
    jobs = Job.objects.filter(project_id=project_id, id__in={proof.job_id for proof in proofs})
    columns = ("id", "lease_token", "attempt_count", "locked_at", "locked_by", "queue_id")
    rows = jobs.filter(lease_token__isnull=False).values_list(*columns, "queue__visibility_timeout_secs")
    found = {
        Proof(job_id, token): Attempt(used, locked_at.isoformat(), str(locked_by), str(queue_id), lease_s)
        for job_id, token, used, locked_at, locked_by, queue_id, lease_s in rows
    }
    return {proof: found[proof] for proof in proofs if proof in found}
