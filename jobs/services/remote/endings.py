"""Ends of attempts that workers over HTTP report: many at once, each fenced by its token, safe to send again."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from jobs import metrics
from jobs.decisions import (
    MAX_ERROR_CHARS,
    MAX_STACK_CHARS,
    Cancelled,
    Failed,
    Interrupted,
    Snoozed,
    Succeeded,
    Verdict,
    storable,
)
from jobs.lease import Ending
from jobs.lifecycle.settle import settle, wake_for_given_back
from jobs.models import JobExecution
from jobs.services.remote.leases import Attempt, Proof, running
from jobs.services.remote.secrets import scrubbers
from jobs.states import ExecutionStatus
from scheduler_project.lib import json_gate, logs
from scheduler_project.lib.errors import Conflict, FieldError
from scheduler_project.lib.scrub import Scrubber

log = logs.get(__name__)

APPLIED, ALREADY_APPLIED, LEASE_LOST, INVALID = "applied", "already_applied", "lease_lost", "invalid"
#: What each outcome is called in the history.
OUTCOMES = {
    "completed": ExecutionStatus.COMPLETED,
    "failed": ExecutionStatus.FAILED,
    "snoozed": ExecutionStatus.SNOOZED,
    "released": ExecutionStatus.INTERRUPTED,
    "cancelled": ExecutionStatus.CANCELLED,
}


@dataclass(frozen=True, slots=True)
class Report:
    """How a worker says an attempt ended.

    Attributes:
        retry_after_s: for snoozed, when to come back; for failed, instead of the policy's delay.
        is_final: failed, and another attempt is useless: to the dead letters at once.
    """

    proof: Proof
    outcome: str
    result: Any = None
    error: str = ""
    stack: str | None = None
    retry_after_s: float | None = None
    is_final: bool = False
    ran_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a report; ``job_status`` is the job's next status if it was applied now."""

    status: str
    job_status: str | None = None
    message: str | None = None


def finish(project_id: UUID, reports: Sequence[Report]) -> list[Receipt]:
    """Apply what can be applied, in one statement; the answers in the order of the reports.

    Raises:
        Conflict: the lease of every single one is lost: nothing was written.
    """
    attempts = running(project_id, {report.proof for report in reports})
    reports = _scrubbed(project_id, reports, attempts)
    endings, refused = _endings(reports, attempts)
    statuses = _settle(endings, attempts)
    history = _history(project_id, {r.proof for r in reports if r.proof not in statuses})
    answers = [refused.get(r.proof) or _receipt(r, statuses, history) for r in reports]
    _count(reports, answers)
    return answers


def _endings(
    reports: Sequence[Report], attempts: dict[Proof, Attempt]
) -> tuple[dict[Proof, Ending], dict[Proof, Receipt]]:
    """The first report of each running attempt as an ending, and the ones whose result can not be stored."""
    now = time.monotonic()
    endings: dict[Proof, Ending] = {}
    refused: dict[Proof, Receipt] = {}
    for report in reports:
        attempt = attempts.get(report.proof)
        if attempt is None or report.proof in endings or report.proof in refused:
            continue
        try:
            verdict = _verdict(report)
        except json_gate.Unstorable as error:
            refused[report.proof] = Receipt(INVALID, message=f"result {error}")
            continue
        job_id, token = str(report.proof.job_id), str(report.proof.token)
        used, claimed_at, worker_id, *_ = attempt
        endings[report.proof] = Ending(job_id, token, used, claimed_at, verdict, report.ran_ms, now, worker_id)
    return endings, refused


def _scrubbed(project_id: UUID, reports: Sequence[Report], attempts: Collection[Proof]) -> list[Report]:
    """The reports without the secrets of the jobs' payloads in their texts and results."""
    talkative = {r.proof.job_id for r in reports if r.proof in attempts and (r.error or r.result is not None)}
    found = scrubbers(project_id, talkative)
    return [_without(found[r.proof.job_id], r) if r.proof.job_id in found else r for r in reports]


def _without(scrub: Scrubber, report: Report) -> Report:
    stack = None if report.stack is None else scrub(storable(report.stack, 4 * MAX_STACK_CHARS))
    error = scrub(storable(report.error, 4 * MAX_ERROR_CHARS))
    return replace(report, error=error, stack=stack, result=scrub.value(report.result))


def _verdict(report: Report) -> Verdict:
    match report.outcome:
        case "completed":
            return Succeeded(None if report.result is None else json_gate.encode(report.result))
        case "snoozed":
            return Snoozed(report.retry_after_s or 0.0)
        case "released":
            return Interrupted()
        case "cancelled":
            return Cancelled(_clean(report.error, MAX_ERROR_CHARS) or "cancelled by the worker")
    stack = None if report.stack is None else _clean(report.stack, MAX_STACK_CHARS)
    error = _clean(report.error, MAX_ERROR_CHARS) or "failed without saying why"
    return Failed(error, stack, report.retry_after_s, report.is_final)


def _clean(text: str, limit: int) -> str:
    """Cut first: looking for secrets in a long text takes long."""
    return logs.redact(storable(text, limit))


def _settle(endings: dict[Proof, Ending], attempts: dict[Proof, Attempt]) -> dict[Proof, str]:
    """The next status of each job that was ended by these."""
    settled = settle(list(endings.values()))
    lost = {ending.token for ending in settled.lost}
    metrics.count_settled(settled.statuses)
    applied = {p: settled.statuses[e.job_id] for p, e in endings.items() if e.token not in lost}
    wake_for_given_back({attempts[p].queue_id for p in applied if isinstance(endings[p].verdict, Interrupted)})
    return applied


def _history(project_id: UUID, proofs: Collection[Proof]) -> dict[Proof, str]:
    """How the attempts ended that do not run any more."""
    if not proofs:
        return {}
    ended = JobExecution.objects.filter(id__in={proof.token for proof in proofs}, project_id=project_id)
    return {Proof(job_id, token): status for token, job_id, status in ended.values_list("id", "job_id", "status")}


def _receipt(report: Report, statuses: dict[Proof, str], history: dict[Proof, str]) -> Receipt:
    if report.proof in statuses:
        return Receipt(APPLIED, statuses[report.proof])
    if history.get(report.proof) == OUTCOMES[report.outcome]:
        return Receipt(ALREADY_APPLIED)
    return Receipt(LEASE_LOST, message="The lease is lost: somebody else has the job, or it has ended.")


def _count(reports: Sequence[Report], answers: Sequence[Receipt]) -> None:
    """Count late results; raise Conflict if there was nothing else."""
    late = [index for index, answer in enumerate(answers) if answer.status == LEASE_LOST]
    metrics.REFUSED.inc(len(late))
    for index in late:
        log.warning("late_result_refused", job_id=str(reports[index].proof.job_id), reason="lease lost")
    if answers and len(late) == len(answers):
        details = [FieldError(f"results[{index}]", LEASE_LOST) for index in late]
        raise Conflict("Every lease of this call is lost: nothing was written.", details)
