"""Dead letters that are redriven run again once each, also when leaders are killed, and it stops when it is told to."""

from __future__ import annotations

from functools import partial

from dlq.models import DeadLetter
from jobs.decisions import Failed
from jobs.lease import Ending
from jobs.lifecycle.claim import Claim, KnownTypes, Want, claim_jobs
from jobs.lifecycle.settle import settle
from jobs.models import Operation
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.counts import COMPLETED, STARTED_TWICE
from jobs.prove.stage.proof import Proof, Size, all_of, at_most, none_of
from jobs.prove.stage.stage import Stage
from jobs.services import operation_steps
from jobs.services.operations import UNENDED, NewOperation, abort, prepare, start
from queues.models import Queue
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.ids import uuid7

SEATS = 500


def run(stage: Stage) -> list[Figure]:
    """A redrive that is stopped on its way; then another for the rest, while one leader after the other is killed."""
    queue = stage.queue(lease_s=60)
    _bury(stage, queue, stage["letters"])
    stage.say(f"{stage['letters']} dead letters")
    leader = stage.scheduler()
    first = _redrive(queue)
    stage.until(partial(_has_changed, first, stage["letters"] // 4), 60, "the redrive is on its way", every_s=0.005)
    abort(first.pk)
    at_stop = _changed(first)
    stage.say(f"told to stop after {at_stop}")
    # Were it to go on, it would do a step in each of the rounds that the next operation takes.
    second = _redrive(queue, limit=stage["letters"] // 4)
    stage.until(partial(_is_over, second), 60, "a later redrive ends")
    after_stop = _changed(first) - at_stop
    third = _redrive(queue)
    for number in range(1, stage["kills"] + 1):
        stage.until(partial(_goes_on, third, _changed(third)), 60, "it goes on", every_s=0.005)
        leader.kill()
        leader = stage.scheduler()
        stage.say(f"leader {number} was killed")
    stage.until(partial(_is_over, third), 120, "the redrive ends")
    stage.worker(20)
    stage.until_all_ended()
    changed = sum(_changed(one) for one in (first, second, third))
    return [
        at_most("after_the_stop", after_stop, operation_steps.STEP_ONE_BY_ONE, "letters, of the step under way"),
        all_of("redriven", changed, stage["letters"], "letters"),
        none_of("redriven_twice", changed - stage["letters"], "letters"),
        none_of("started_twice", stage.value(STARTED_TWICE), "jobs"),
        all_of("completed", stage.value(COMPLETED), stage["letters"], "jobs"),
        none_of("letters_left", DeadLetter.objects.filter(resolved=False).count()),
    ]


def _bury(stage: Stage, queue: Queue, count: int) -> None:
    """Jobs that have failed for good."""
    stage.submit(queue, count, max_attempts=1)
    worker_id = str(uuid7())
    claim = Claim(worker_id, [Want(str(queue.pk), SEATS)], KnownTypes.of([], ["*"]), SEATS)
    while leases := claim_jobs(claim):
        settle([Ending.of(lease, Failed("the target was down"), worker_id, 1.0) for lease in leases])


def _redrive(queue: Queue, limit: int | None = None) -> Operation:
    ids = None
    if limit is not None:
        ids = list(DeadLetter.objects.filter(resolved=False).order_by("id").values_list("id", flat=True)[:limit])
    operation, _ = prepare(queue.project, NewOperation(action="redrive", filter={}, ids=ids))
    return start(operation, by=None, api_key_id=None)


def _changed(operation: Operation) -> int:
    return Operation.objects.values_list("changed", flat=True).get(pk=operation.pk)


def _has_changed(operation: Operation, least: int) -> bool:
    return _changed(operation) >= least


def _goes_on(operation: Operation, from_: int) -> bool:
    return _is_over(operation) or _changed(operation) > from_


def _is_over(operation: Operation) -> bool:
    return not Operation.objects.filter(pk=operation.pk, state__in=UNENDED).exists()


def _without_stop() -> None:
    # A leader that goes on with what was told to stop.
    move = operation_steps._move

    def reopen(operation: Operation, *more: object) -> None:
        Operation.objects.filter(pk=operation.pk).update(ended_at=None, state=Operation.State.RUNNING)
        move(operation, *more)  # type: ignore[arg-type]

    replace(operation_steps, "_move", reopen)
    replace(operation_steps, "UNENDED", (*UNENDED, Operation.State.ABORTED))


PROOF = Proof(
    name="redrive",
    run=run,
    sizes={"letters": Size(1_200, 20_000), "kills": Size(2, 20)},
    breaks={"stop": _without_stop},
)
