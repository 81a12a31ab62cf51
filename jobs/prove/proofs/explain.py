"""Why a job does not run is said in full, and "nothing keeps it" is said exactly of what the next claim takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from jobs.lifecycle.claim import Claim, KnownTypes, Want, claim_jobs
from jobs.lifecycle.claim_gated import claim_gated
from jobs.lifecycle.submit import NewJob, Parent, submit_job
from jobs.models import CircuitBreaker, Job, Worker
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from jobs.selectors import explain as explaining
from jobs.selectors.explain import explain
from orgs.models import TokenBucket
from queues.models import Queue
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.sql import database_now

ANY = KnownTypes.of([], ["*"])
KEY, CIRCUIT = "k", "prove.call shop"
#: What can be built, each by the chance that a state has it.
CONDITIONS = {
    "queue_paused": 0.2, "queue_deleted": 0.1, "no_worker": 0.15, "at_limit": 0.2, "key_at_limit": 0.2,
    "rate_limited": 0.2, "circuit_open": 0.15, "circuit_half_open": 0.1, "in_line": 0.25, "not_due": 0.1,
    "blocked": 0.1,
}  # fmt: skip
#: Of a job that waits for its time or its parents, only these are told beside it.
OF_QUEUE = {"queue_paused", "queue_deleted", "no_worker", "at_limit"}


@dataclass(slots=True)
class _Tally:
    wrongly_named: int = 0
    next_but_not_claimed: int = 0
    claimed_but_not_next: int = 0
    free: int = 0
    met: set[str] = field(default_factory=set)


def run(stage: Stage) -> list[Figure]:
    """Random states, built for real; what is said is held against what was built and against a claim that is undone."""
    lot = Random(stage["seed"])  # noqa: S311 - the cases
    _ = stage.project
    tally = _Tally()
    for number in range(stage["states"]):
        wanted = _draw(lot)
        with transaction.atomic():
            job = _build(stage, number, wanted)
            _judge(stage, job, wanted, tally)
            transaction.set_rollback(True)
        if number % 100 == 99:
            stage.say(f"{number + 1} states")
    return [
        all_of("states", stage["states"], 1),
        none_of("wrongly_named", tally.wrongly_named, "states"),
        none_of("next_but_not_claimed", tally.next_but_not_claimed, "states"),
        none_of("claimed_but_not_next", tally.claimed_but_not_next, "states"),
        all_of("conditions_met_with", len(tally.met), len(CONDITIONS)),
        all_of("with_nothing_in_the_way", tally.free, 1, "states"),
    ]


def _draw(lot: Random) -> set[str]:
    wanted = {name for name, chance in CONDITIONS.items() if lot.random() < chance}
    if {"circuit_open", "circuit_half_open"} <= wanted:
        wanted.discard("circuit_half_open")
    if {"not_due", "blocked"} <= wanted:
        wanted.discard("not_due")
    return wanted


def _build(stage: Stage, number: int, wanted: set[str]) -> Job:
    """A job in a queue of its own, with everything in its way that is wanted; all of it made by the product's verbs."""
    queue = stage.queue(f"q{number}", lease_s=60)
    if "no_worker" not in wanted:
        Worker.objects.create(hostname="h", pid=1, version="1", max_concurrency=1)
    if "rate_limited" in wanted:
        Queue.objects.filter(pk=queue.pk).update(rate_limit=5, rate_period_secs=3_600)
    key = KEY if "key_at_limit" in wanted else None
    if key:
        _occupy(queue, 1, concurrency_key=key)
    if "at_limit" in wanted:
        _occupy(queue, 2 - bool(key))
        Queue.objects.filter(pk=queue.pk).update(max_concurrency=2)
    if "in_line" in wanted:
        submit_job(queue, NewJob(job_type="prove.effect", payload={}, priority=5))
    job = submit_job(queue, _wanted_job(queue, wanted, key))
    if "rate_limited" in wanted:
        bucket = {"tokens": 0.0, "refilled_at": Now()}
        TokenBucket.objects.update_or_create(key=f"queue:{queue.pk}", defaults=bucket)
    for state in ("open", "half_open"):
        if f"circuit_{state}" in wanted:
            CircuitBreaker.objects.create(
                project_id=queue.project_id, name=CIRCUIT, state=state, opened_at=database_now(),
                allowance=1 if state == "half_open" else None, let_through=[uuid7()] if state == "half_open" else [],
            )  # fmt: skip
    changes = {"is_paused": "queue_paused" in wanted}
    Queue.objects.filter(pk=queue.pk).update(**changes)
    if "queue_deleted" in wanted:
        Queue.objects.filter(pk=queue.pk).update(deleted_at=Now())
    return Job.objects.get(pk=job.id)


def _wanted_job(queue: Queue, wanted: set[str], key: str | None) -> NewJob:
    has_circuit = bool(wanted & {"circuit_open", "circuit_half_open"})
    parents = []
    if "blocked" in wanted:
        parent = submit_job(queue, NewJob(job_type="prove.effect", payload={}, delay_s=3_600))
        parents = [Parent(parent.id)]
    return NewJob(
        job_type="prove.call" if has_circuit else "prove.effect",
        payload={"name": "shop", "port": 1} if has_circuit else {},
        concurrency_key=key,
        run_at=database_now() + timedelta(hours=1) if "not_due" in wanted else None,
        depends_on=parents,
    )


def _occupy(queue: Queue, count: int, **fields: str) -> None:
    """Jobs of the queue that run already."""
    for _ in range(count):
        submit_job(queue, NewJob(job_type="prove.effect", payload={}, **fields))  # type: ignore[arg-type]
    if len(_claimed(queue.pk, seats=count)) != count:
        raise RuntimeError("the jobs that take the places could not be claimed")


def _claimed(queue_id: UUID, seats: int = 1) -> list[str]:
    """The ids of the jobs that a worker gets from the queue now."""
    want = Want(str(queue_id), seats)
    claim = Claim(str(uuid7()), [want], ANY, seats)
    is_gated = Queue.objects.values_list("is_gated", flat=True).get(pk=queue_id)
    leases = claim_gated(claim, want).leases if is_gated else claim_jobs(claim)
    return [lease.job_id for lease in leases]


def _judge(stage: Stage, job: Job, wanted: set[str], tally: _Tally) -> None:
    expected = wanted & OF_QUEUE | wanted & {"not_due", "blocked"} if wanted & {"not_due", "blocked"} else wanted
    said = {reason.code for reason in explain(job)}
    if said != (expected or {"next"}):
        tally.wrongly_named += 1
        stage.say(f"built {sorted(expected) or ['next']}, said {sorted(said)}")
    tally.met |= expected
    is_next = said == {"next"}
    tally.free += is_next
    # Without a worker nobody claims.
    is_claimed = "no_worker" not in wanted and str(job.pk) in _claimed(job.queue_id)
    tally.next_but_not_claimed += is_next and not is_claimed
    tally.claimed_but_not_next += is_claimed and not is_next


def _without_gates() -> None:
    replace(explaining, "gates_of", lambda _job, _queue: [])


PROOF = Proof(
    name="explain",
    run=run,
    sizes={"states": Size(120, 5_000), "seed": Size(1, 2)},
    breaks={"gates": _without_gates},
)
