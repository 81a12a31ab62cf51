"""Pure: what an attempt's verdict, the attempts used and the retry rule mean for the job."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from jobs.states import ExecutionStatus, JobStatus
from queues.backoff import DEFAULT_RULE, RetryRule, delay_s

EXHAUSTED = "attempts exhausted"
WORKER_LOST = "worker lost"
DEADLINE_PASSED = "deadline passed"
START_DEADLINE_PASSED = "start deadline passed"
NOT_RETRYABLE = "not retryable"
MAX_ERROR_CHARS = 10_000
MAX_STACK_CHARS = 50_000
MAX_SNOOZE_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned; ``result_json`` has passed the gate, None is no result."""

    result_json: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised. ``retry_after_s`` overrides the rule's delay; ``is_final``: another attempt is useless.

    ``is_crash``: its process died; ``is_poison``: so often that it is the job.
    """

    error: str
    stack: str | None = None
    retry_after_s: float | None = None
    is_final: bool = False
    is_crash: bool = False
    is_poison: bool = False


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler asked to come back later; no attempt is used."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Discarded:
    """The handler said: failed, and neither retry nor dead letter."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The handler stopped because somebody asked, or because it said so."""

    reason: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The worker shut down before the handler ended; no attempt is used."""


@dataclass(frozen=True, slots=True)
class Unbegun:
    """The job was claimed and goes back before its handler began; no attempt is used, nothing is recorded."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease ran out: the worker died, froze or lost its database. ``is_poison``: so often that it is the job."""

    is_poison: bool = False


Verdict = Succeeded | Failed | Snoozed | Discarded | Cancelled | Interrupted | Unbegun | Lost


class Decision(NamedTuple):
    """What settling writes: the job's next status and the attempt's record (``outcome`` None: none)."""

    status: str
    outcome: str | None
    used: int = 1
    delay_s: float = 0.0
    result_json: str | None = None
    error: str | None = None
    stack: str | None = None
    reason: str | None = None
    losses: int = 0


COMPLETED = Decision(JobStatus.COMPLETED.value, ExecutionStatus.COMPLETED.value)
_UNBEGUN = Decision(JobStatus.QUEUED.value, None, used=0)
_INTERRUPTED = Decision(JobStatus.QUEUED.value, ExecutionStatus.INTERRUPTED.value, used=0)


def decide(
    verdict: Verdict, attempt_count: int, rule: RetryRule = DEFAULT_RULE, rng: random.Random | None = None
) -> Decision:
    """The decision for an attempt that ended.

    Args:
        attempt_count: attempts used before this one.
        rule: read only for failures and lost leases.
    """
    match verdict:
        case Succeeded():
            return COMPLETED if verdict.result_json is None else COMPLETED._replace(result_json=verdict.result_json)
        case Snoozed(delay_s=delay):
            seconds = min(max(0.0, delay), MAX_SNOOZE_S)
            return Decision(JobStatus.SCHEDULED.value, ExecutionStatus.SNOOZED.value, used=0, delay_s=seconds)
        case Discarded(reason=reason):
            return Decision(
                JobStatus.FAILED.value, ExecutionStatus.FAILED.value, error=storable(reason, MAX_ERROR_CHARS)
            )
        case Cancelled(reason=reason):
            text = storable(reason, MAX_ERROR_CHARS)
            return Decision(JobStatus.CANCELLED.value, ExecutionStatus.CANCELLED.value, error=text)
        case Interrupted():
            return _INTERRUPTED
        case Unbegun():
            return _UNBEGUN
        case Failed():
            return _failed(verdict, attempt_count + 1, rule, rng)
        case Lost():
            return _lost(verdict, attempt_count + 1, rule, rng)


def _lost(verdict: Lost, attempt_count: int, rule: RetryRule, rng: random.Random | None) -> Decision:
    error = "The lease ran out: the worker died, froze or lost its connection to the database."
    ending = Decision(JobStatus.SCHEDULED.value, ExecutionStatus.LOST.value, error=error, losses=1)
    if verdict.is_poison:
        return ending._replace(status=JobStatus.DEAD_LETTER.value, reason=WORKER_LOST)
    return _retry_or_bury(ending, attempt_count, rule, None, WORKER_LOST, rng)


def _failed(verdict: Failed, attempt_count: int, rule: RetryRule, rng: random.Random | None) -> Decision:
    stack = verdict.stack
    ending = Decision(
        JobStatus.SCHEDULED.value,
        ExecutionStatus.FAILED.value,
        error=storable(verdict.error, MAX_ERROR_CHARS),
        stack=None if stack is None else storable(stack, MAX_STACK_CHARS),
        losses=int(verdict.is_crash),
    )
    if verdict.is_poison:
        return ending._replace(status=JobStatus.DEAD_LETTER.value, reason=WORKER_LOST)
    if verdict.is_final:
        return ending._replace(status=JobStatus.DEAD_LETTER.value, reason=NOT_RETRYABLE)
    return _retry_or_bury(ending, attempt_count, rule, verdict.retry_after_s, EXHAUSTED, rng)


def _retry_or_bury(
    ending: Decision, attempt_count: int, rule: RetryRule, after_s: float | None, reason: str, rng: random.Random | None
) -> Decision:
    if attempt_count >= rule.max_attempts:
        return ending._replace(status=JobStatus.DEAD_LETTER.value, reason=reason)
    delay = delay_s(rule, attempt_count, rng) if after_s is None else min(max(0.0, after_s), MAX_SNOOZE_S)
    if rule.left_s is not None and delay >= rule.left_s:
        return ending._replace(status=JobStatus.DEAD_LETTER.value, reason=DEADLINE_PASSED)
    return ending._replace(delay_s=delay)


def storable(text: str, limit: int) -> str:
    """Text that PostgreSQL takes: no U+0000, no half surrogate, at most ``limit`` characters (head and tail kept)."""
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) > limit:
        half = limit // 2 - 40
        text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters cut …\n{text[-half:]}"
    return text
