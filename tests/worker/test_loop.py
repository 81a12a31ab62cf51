"""The worker's loop, turn by turn in the test's own thread: what one round trip hands over and takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from jobs.decisions import Failed, Snoozed, Succeeded, Unbegun, Verdict
from jobs.lease import Ending, Lease
from jobs.lifecycle.settle import settle
from jobs.models import Job, JobLog
from jobs.worker import loop as module
from jobs.worker.config import WorkerConfig
from jobs.worker.loop import Loop
from jobs.worker.pool import Pool
from jobs.worker.wire import Wire
from queues.models import Queue
from tests.factories import ANY_TYPE, claim_from, end, executions_of, make_job, make_jobs, make_queue, reload
from tests.waiting import wait_until
from tests.worker_parts import Bench, Gate, InPlace, context_of, own_handlers

pytestmark = pytest.mark.django_db

BAD_FOR_POSTGRES = Succeeded('{"a":"\\u0000"}')
BAD_FOR_PYTHON = Snoozed("soon")  # type: ignore[arg-type]


class Turns:
    """A loop that is driven by hand, its pool, and its handlers "noop" and "gate"."""

    def __init__(self, bench: Bench, **config: Any) -> None:
        self.bench, self.gate, self.dry = bench, Gate(), 0
        bench.handle("noop", lambda ctx: None)
        bench.handle("gate", self.gate)
        self.worker_id = bench.worker_id
        self.leases_s: list[float] = []
        self.loop = Loop(
            WorkerConfig(**config), self.worker_id, ANY_TYPE, bench.outbox, self._note_dry, self.leases_s.append
        )
        self.loop._wire = Wire(self.loop._names, self.loop._wake.set, InPlace())
        bench.executor._done = self.loop.done
        self.loop.pool = Pool(config.get("seats", 4), bench.executor, self.loop.idle)

    def _note_dry(self) -> None:
        self.dry += 1

    def hold(self, queue: Queue, count: int) -> list[Lease]:
        """Leases in the loop's hands whose handlers run elsewhere."""
        leases = claim_from(queue, count, worker_id=self.worker_id)
        self.loop._in_hand.update((lease.token, lease) for lease in leases)
        self.loop.stop_claiming()
        return leases

    def end(self, lease: Lease, verdict: Verdict) -> None:
        """The handler of a lease ends."""
        self.loop.done(lease, Ending.of(lease, verdict, self.worker_id, 1.0))

    def turn(self) -> None:
        """One round trip; one that was refused has sorted itself out."""
        with suppress(module._Refused):
            self.loop._turn()

    def turn_until(self, condition: Any) -> None:
        """Round trips until something is so."""

        def turn_and_look() -> Any:
            self.turn()
            return condition()

        wait_until(turn_and_look, timeout_s=10)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """An executor with handlers of the test's own."""
    with own_handlers() as bench:
        yield bench


@pytest.fixture
def turns(bench: Bench, db: None) -> Iterator[Turns]:
    """A loop with four seats."""
    turns = Turns(bench)
    yield turns
    turns.gate.open()


def statuses(leases: list[Lease]) -> list[str]:
    return [reload(lease.job_id).status for lease in leases]


def test_what_is_queued_is_claimed_run_and_settled(turns: Turns, queue: Queue) -> None:
    make_jobs(queue, 20)

    turns.turn_until(lambda: Job.objects.filter(status="completed").count() == 20)

    assert turns.loop.in_hand() == []


def test_no_more_than_the_seats_are_claimed_when_jobs_are_long(turns: Turns, queue: Queue) -> None:
    make_jobs(queue, 20, "gate")

    for _ in range(5):
        turns.turn()

    assert Job.objects.in_flight().count() == 4
    assert len(turns.loop.in_hand()) == 4


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("bad", [BAD_FOR_POSTGRES, BAD_FOR_PYTHON], ids=["postgres", "python"])
def test_an_ending_that_can_not_be_written_costs_only_itself(turns: Turns, queue: Queue, bad: Verdict) -> None:
    make_jobs(queue, 3)
    leases = turns.hold(queue, 3)
    for lease, verdict in zip(leases, [Succeeded(), bad, Succeeded()], strict=True):
        turns.end(lease, verdict)

    turns.turn()

    assert statuses(leases) == ["completed", "scheduled", "completed"]
    assert turns.loop.in_hand() == []
    [execution] = executions_of(leases[1].job_id)
    assert execution.status == "failed"
    assert "could not be stored" in str(execution.error_message)


def test_endings_are_kept_while_the_database_is_away(
    turns: Turns, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_jobs(queue, 2)
    leases = turns.hold(queue, 2)
    with monkeypatch.context() as away:
        away.setattr("jobs.worker.wire.exchange", failing)
        for lease in leases:
            turns.end(lease, Succeeded())
        turns.bench.outbox.log(context_of(leases[0]), "info", "hello")
        for _ in range(3):
            with pytest.raises(OperationalError):
                turns.turn()
        assert len(turns.loop.in_hand()) == 2

    turns.turn()

    assert statuses(leases) == ["completed", "completed"]
    assert [line.message for line in JobLog.objects.filter(job_id=leases[0].job_id)] == ["hello"]
    assert turns.loop.in_hand() == []


def failing(*_: Any) -> Any:
    raise OperationalError("the database is away")


@pytest.mark.django_db(transaction=True)
def test_endings_are_kept_when_the_database_goes_away_while_a_bad_one_is_sorted_out(
    turns: Turns, queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_jobs(queue, 4)
    leases = turns.hold(queue, 4)
    for lease, verdict in zip(leases, [Succeeded(), BAD_FOR_POSTGRES, Succeeded(), Succeeded()], strict=True):
        turns.end(lease, verdict)
    calls: list[list[Ending]] = []

    def settle_until_away(endings: list[Ending]) -> Any:
        calls.append(endings)
        return settle(endings) if len(calls) < 4 else failing()

    with monkeypatch.context() as away:
        away.setattr("jobs.worker.salvage.settle", settle_until_away)
        with pytest.raises(OperationalError):
            turns.turn()
    assert statuses(leases) == ["completed", "scheduled", "running", "running"]

    turns.turn()

    assert statuses(leases) == ["completed", "scheduled", "completed", "completed"]
    assert turns.loop.in_hand() == []
    assert "late_result_refused" not in caplog.text


def test_a_late_result_is_dropped_and_counted(turns: Turns, queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    make_job(queue)
    [ghost] = turns.hold(queue, 1)
    end(ghost, Unbegun())
    turns.end(ghost, Succeeded())

    turns.turn()

    assert reload(ghost.job_id).status == "queued"
    assert turns.loop.in_hand() == []
    assert "late_result_refused" in caplog.text


def test_a_dropped_attempt_is_no_longer_in_hand(turns: Turns, queue: Queue) -> None:
    make_job(queue)
    [lease] = turns.hold(queue, 1)

    turns.loop.done(lease, None)

    assert turns.loop.in_hand() == []
    assert reload(lease.job_id).status == "running"


def test_jobs_that_have_not_begun_go_back_when_the_worker_stops_claiming(
    turns: Turns, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    monkeypatch.setattr(module, "wake_for_given_back", woken.extend)
    make_jobs(queue, 6, "gate")
    leases = claim_from(queue, 6, worker_id=turns.worker_id, starts=4)
    turns.loop._in_hand.update((lease.token, lease) for lease in leases)
    turns.loop.pool.take(leases)

    turns.loop.stop_claiming()
    turns.turn()

    assert statuses(leases) == ["running"] * 4 + ["queued"] * 2
    assert woken == [str(queue.pk)]
    assert {reload(lease.job_id).attempt_count for lease in leases} == {0}
    assert len(turns.loop.in_hand()) == 4


def test_claims_whose_answer_was_lost_are_given_back(turns: Turns, queue: Queue) -> None:
    make_jobs(queue, 3)
    known, unknown = turns.hold(queue, 1), claim_from(queue, 2, worker_id=turns.worker_id)
    turns.loop._recover_at = [0.0]

    turns.turn()

    assert statuses([*known, *unknown]) == ["running", "queued", "queued"]


def test_a_worker_for_one_job_takes_one_and_is_then_done(bench: Bench, queue: Queue) -> None:
    turns = Turns(bench, mode="once")
    make_jobs(queue, 3)

    turns.turn_until(lambda: turns.dry)

    assert Job.objects.filter(status="completed").count() == 1
    assert Job.objects.filter(status="queued").count() == 2


def test_a_draining_worker_is_done_when_no_work_is_left_and_not_before(bench: Bench, queue: Queue) -> None:
    turns = Turns(bench, mode="drain", poll_s=0.01)
    make_jobs(queue, 30)

    turns.turn_until(lambda: turns.dry)

    assert set(Job.objects.values_list("status", flat=True)) == {"completed"}


def test_a_hint_for_a_queue_the_worker_does_not_serve_is_passed_over(bench: Bench, queue: Queue) -> None:
    other = make_queue()
    turns = Turns(bench, queue_ids=(str(queue.pk),), poll_s=600)
    turns.turn()
    make_job(other)
    make_job(queue)

    turns.loop.hint(str(other.pk))
    turns.turn()
    assert not Job.objects.exclude(status="queued").exists()
    turns.loop.hint(str(queue.pk))

    turns.turn_until(lambda: Job.objects.filter(queue=queue, status="completed").exists())
    assert Job.objects.get(queue=other).status == "queued"


def test_a_hint_for_a_queue_never_heard_of_makes_the_worker_look(bench: Bench, queue: Queue) -> None:
    turns = Turns(bench, poll_s=600)
    turns.turn()
    make_job(queue)

    turns.loop.hint(str(queue.pk))

    turns.turn_until(lambda: Job.objects.filter(status="completed").exists())


def test_a_queue_that_is_gone_is_no_error(turns: Turns, queue: Queue) -> None:
    make_job(queue)
    turns.turn_until(lambda: Job.objects.filter(status="completed").exists())

    turns.loop.hint(str(uuid4()))
    Queue.objects.filter(pk=queue.pk).update(is_paused=True)
    make_job(queue)
    turns.loop.hint(str(queue.pk))
    turns.turn()

    assert Job.objects.filter(status="queued").count() == 1


def test_failures_are_retried_by_the_rule_through_the_loop(turns: Turns, queue: Queue) -> None:
    make_job(queue, max_attempts=1)
    [lease] = turns.hold(queue, 1)
    turns.end(lease, Failed("boom"))

    turns.turn()

    assert statuses([lease]) == ["dead_letter"]
