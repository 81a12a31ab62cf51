"""Dead letters that are redriven run again once each, while leaders die: some first, at a pace, until told to stop.

When a job was queued again is read from its ``run_at``, which nothing moves afterwards.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dlq.models import DeadLetter
from jobs.decisions import Failed
from jobs.lease import Ending
from jobs.lifecycle.claim import Claim, KnownTypes, Want, claim_jobs
from jobs.lifecycle.settle import settle
from jobs.models import Operation
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.counts import COMPLETED, STARTED_TWICE
from jobs.prove.stage.process import Process
from jobs.prove.stage.proof import Proof, Size, all_of, at_most, none_of
from jobs.prove.stage.stage import Stage
from jobs.services import operation_care, operation_steps
from jobs.services.operations import UNENDED, NewOperation, abort, prepare, start
from queues.models import Queue
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.ids import uuid7

SEATS = 500
CANARY = 5
#: A second, far below what any machine does without it.
PACE = 3
#: A canary takes so long that whoever does not wait for it is seen.
CANARY_MS = 1_500
BEFORE_THE_CANARY = """
select count(*) from jobs
 where queue_id = %(queue)s
   and not id = any(%(canary)s::uuid[])
   and status <> 'dead_letter'
   and run_at < (select max(completed_at) from jobs where id = any(%(canary)s::uuid[]))
"""
MOST_IN_A_SECOND = """
select coalesce(max(n), 0)
  from (select count(*) over (order by run_at range between current row and interval '1 second' following) as n
          from jobs where queue_id = %s and status <> 'dead_letter') as windows
"""


def run(stage: Stage) -> list[Figure]:
    """Stopped on its way; the rest while leaders are killed; with a canary that fails, one that holds; at a pace."""
    queues = {name: stage.queue(name, lease_s=60) for name in ("work", "bad", "good", "paced")}
    # All before there is a worker, which would be faster than the undertaker.
    _bury(stage, queues["work"], stage["letters"])
    _bury(stage, queues["bad"], stage["careful"], job_type="prove.fate", payload={"succeeds": False})
    _bury(stage, queues["good"], stage["careful"], payload={"ms": CANARY_MS})
    _bury(stage, queues["paced"], stage["paced"])
    figures, leader = _stop_and_kills(stage, queues["work"])
    figures += _bad_canary(stage, queues["bad"])
    figures += _good_canary(stage, queues["good"], leader)
    return figures + _pace(stage, queues["paced"])


def _stop_and_kills(stage: Stage, queue: Queue) -> tuple[list[Figure], Process]:
    """A redrive that is stopped on its way; then another for the rest, while one leader after the other is killed."""
    stage.say(f"{stage['letters']} dead letters")
    leader = stage.scheduler()
    first = _redrive(queue)
    stage.until(partial(_has_changed, first, stage["letters"] // 8), 60, "the redrive is on its way", every_s=0.005)
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
    figures = [
        at_most("after_the_stop", after_stop, operation_steps.STEP_WITH_CARE, "letters, of the step under way"),
        all_of("redriven", changed, stage["letters"], "letters"),
        none_of("redriven_twice", changed - stage["letters"], "letters"),
        none_of("started_twice", stage.value(STARTED_TWICE), "jobs"),
        all_of("completed", stage.value(COMPLETED), stage["letters"], "jobs"),
        none_of("letters_left", DeadLetter.objects.filter(queue=queue, resolved=False).count()),
    ]
    return figures, leader


def _bad_canary(stage: Stage, queue: Queue) -> list[Figure]:
    """The cause is not mended: what was queued again fails again, and nothing follows it."""
    one = _redrive(queue, canary=CANARY)
    stage.until(partial(_is_over, one), 60, "the canary fails and stops it")
    stage.say("a bad canary has ended it")
    left = DeadLetter.objects.filter(queue=queue, resolved=False).count()
    return [
        all_of("stopped_by_its_canary", Operation.objects.filter(pk=one.pk, state="stopped").count(), 1),
        none_of("queued_after_a_bad_canary", stage["careful"] - left - CANARY, "letters"),
    ]


def _good_canary(stage: Stage, queue: Queue, leader: Process) -> list[Figure]:
    """The rest follows when all of the canary have completed, also if the leader is killed while it waits."""
    standby = stage.scheduler()
    stage.until(lambda: standby.events("scheduler_started"), 60, "another scheduler stands by")
    one = _redrive(queue, canary=CANARY)
    stage.until(partial(_has_changed, one, CANARY), 60, "the canary is queued again", every_s=0.005)
    leader.kill()
    stage.until(partial(_is_over, one), 60, "the rest follows")
    stage.until_all_ended()
    canary = Operation.objects.values_list("canary_jobs", flat=True).get(pk=one.pk)
    [[early]] = stage.session.execute(BEFORE_THE_CANARY, {"queue": queue.pk, "canary": canary}).fetchall()
    return [
        none_of("queued_before_the_canary_ended", early, "letters"),
        all_of("queued_after_it", _changed(one), stage["careful"], "letters"),
    ]


def _pace(stage: Stage, queue: Queue) -> list[Figure]:
    """No faster than its pace, but for a second's worth that it may have fallen behind."""
    one = _redrive(queue, pace=PACE, pace_per="second")
    stage.until(partial(_is_over, one), 60 + stage["paced"] / PACE, "the paced redrive ends")
    return [
        at_most("most_in_a_second", stage.value(MOST_IN_A_SECOND, queue.pk), 2 * PACE + 1, "letters"),
        all_of("redriven_at_a_pace", _changed(one), stage["paced"], "letters"),
    ]


def _bury(stage: Stage, queue: Queue, count: int, **fields: Any) -> None:
    """Jobs that have failed for good."""
    stage.submit(queue, count, max_attempts=1, **fields)
    worker_id = str(uuid7())
    claim = Claim(worker_id, [Want(str(queue.pk), SEATS)], KnownTypes.of([], ["*"]), SEATS)
    while leases := claim_jobs(claim):
        settle([Ending.of(lease, Failed("the target was down"), worker_id, 1.0) for lease in leases])


def _redrive(queue: Queue, limit: int | None = None, **care: Any) -> Operation:
    ids = None
    if limit is not None:
        ids = list(
            DeadLetter.objects.filter(queue=queue, resolved=False).order_by("id").values_list("id", flat=True)[:limit]
        )
    operation, _ = prepare(
        queue.project, NewOperation(action="redrive", filter={"queue_id": queue.pk}, ids=ids, **care)
    )
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


def _without_canary() -> None:
    replace(operation_care, "verdict_of", lambda job_ids: operation_care.Verdict(len(job_ids)))


def _without_pace() -> None:
    replace(operation_care, "_by_pace", lambda *_: SEATS)


PROOF = Proof(
    name="redrive",
    run=run,
    sizes={"letters": Size(3_000, 20_000), "kills": Size(2, 20), "careful": Size(60, 600), "paced": Size(24, 600)},
    breaks={"stop": _without_stop, "canary": _without_canary, "pace": _without_pace},
)
