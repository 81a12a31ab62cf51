"""settle: every end of an attempt, for a whole batch at once, fenced by the lease tokens."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobs.decisions import Failed, Lost, decide
from jobs.events import jobs_changed
from jobs.hints import DUE, WORK, hint
from jobs.lease import Ending
from jobs.lifecycle.circuits import note_calls
from jobs.models import Job
from jobs.states import JobStatus
from queues.backoff import DEFAULT_RULE
from scheduler_project.lib.sql import Row, past_deadlocks, run_together
from scheduler_project.lib.statements import Call, plain_array, text_array

#: What people can subscribe to (ADR 26).
_TOLD = frozenset({JobStatus.DEAD_LETTER.value, JobStatus.FAILED.value})


class Settled(NamedTuple):
    """What was written, by job id; ``lost`` are the endings whose lease no longer held: nothing was written."""

    statuses: dict[str, str]
    lost: list[Ending]
    #: (project, name) of the circuits that are open now.
    open_circuits: frozenset[tuple[str, str]] = frozenset()


def settle(endings: Sequence[Ending]) -> Settled:
    """End attempts in one statement.

    A ghost's endings, whose token is no longer the row's, change nothing and come back as ``lost``.
    Source: sql/settle.sql; ADR 0004.
    """
    if not endings:
        return Settled({}, [])
    calls = settle_calls(endings)
    settled = settled_of(endings, past_deadlocks(lambda: run_together(calls)))
    jobs_changed(settled.statuses)
    return settled


def settle_calls(endings: Sequence[Ending]) -> list[Call]:
    """The statements that end these attempts, let go the jobs that waited for them, and note what their circuits learn.

    For one transaction, in this order; the last ones only if a job has a circuit.
    """
    return [_settle_call(endings), Job.claims.release(), *note_calls(endings)]


def _settle_call(endings: Sequence[Ending]) -> Call:
    """Asks for the retry rules only if one of the jobs may be retried."""
    now = time.monotonic()
    # In the order of their ids, as every other statement that locks several jobs does: no deadlocks. Once for each
    # token: a handler may end in the very moment in which the worker gives its job back.
    batch = sorted({e.token: e for e in reversed(endings)}.values(), key=_place)
    retried = [e.job_id for e in batch if isinstance(e.verdict, Failed | Lost)]
    rules = Job.objects.retry_rules(retried) if retried else {}
    made = [decide(e.verdict, e.attempt_count, rules.get(e.job_id, DEFAULT_RULE)) for e in batch]
    return Job.claims.settle(
        may_be_told=any(d.status in _TOLD for d in made),
        ids=plain_array([e.job_id for e in batch]),
        tokens=plain_array([e.token for e in batch]),
        statuses=plain_array([d.status for d in made]),
        outcomes=plain_array([d.outcome for d in made]),
        used=plain_array([d.used for d in made]),
        delays_s=plain_array([d.delay_s for d in made]),
        results=text_array([d.result_json for d in made]),
        errors=text_array([d.error for d in made]),
        stacks=text_array([d.stack for d in made]),
        reasons=text_array([d.reason for d in made]),
        claimed_ats=text_array([e.claimed_at for e in batch]),
        ran_ms=plain_array([e.ran_ms for e in batch]),
        ago_ms=plain_array([round((now - e.ended_at) * 1000, 3) for e in batch]),
        worker_ids=plain_array([e.worker_id for e in batch]),
        losses=plain_array([d.losses for d in made]),
    )


def settled_of(endings: Sequence[Ending], answers: Sequence[Sequence[Row]]) -> Settled:
    """Read the statements' answers, and wake whom they concern."""
    rows, released, *noted = answers
    statuses = {job_id: status for job_id, status, _ in rows if job_id is not None}
    held = {token for _, _, token in rows}
    for queue_id in {row[0] for row in released}:
        hint(WORK, queue_id)
    if released:
        jobs_changed([], parents=statuses)
    not_trusted = noted[-1] if noted else []
    if not_trusted or JobStatus.SCHEDULED.value in statuses.values():
        hint(DUE)
    open_circuits = frozenset((project_id, name) for project_id, name, is_open in not_trusted if is_open)
    return Settled(statuses, [e for e in endings if e.token not in held], open_circuits)


def _place(ending: Ending) -> tuple[str, str]:
    return ending.job_id, ending.token


def wake_for_given_back(queue_ids: Iterable[str]) -> None:
    """Tell other workers that jobs have come back to these queues."""
    for queue_id in queue_ids:
        hint(WORK, queue_id)
