"""Cancel against finish: the answer agrees with what became of the job, and that never changes again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from dlq.models import DeadLetter
from jobs.decisions import Discarded, Failed, Snoozed, Succeeded, Unbegun, Verdict
from jobs.lease import Lease
from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.promote import promote_due
from jobs.lifecycle.reap import reap_expired
from jobs.models import Job
from jobs.states import TERMINAL, JobStatus
from queues.models import Queue
from scheduler_project.lib.errors import Conflict
from tests.factories import claim_from, claim_one, end, executions_of, make_job, make_jobs, reload
from tests.threads import Session, run_together

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 300
VERDICTS: list[Verdict] = [Succeeded(), Failed("boom", None, 0.0), Discarded("no"), Snoozed(0), Unbegun()]


def answer_of_cancel(job_id: str, after_s: float) -> str:
    """What a client hears: the status, or conflict."""
    _spin(after_s)
    try:
        return cancel_job(UUID(job_id), reason="race")
    except Conflict:
        return "conflict"


def finish(lease: Lease, verdict: Verdict, after_s: float) -> str:
    _spin(after_s)
    return end(lease, verdict).statuses[lease.job_id]


def _spin(seconds: float) -> None:
    """Shift one thread against the other by less than a sleep can measure."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def test_three_hundred_cancels_agree_with_what_became_of_the_job(committed_queue: Queue) -> None:
    chance = random.Random(7)
    outcomes: dict[tuple[str, str], int] = {}
    make_jobs(committed_queue, ROUNDS)
    leases = claim_from(committed_queue, ROUNDS)
    with Session() as client, Session() as worker:
        for number, lease in enumerate(leases):
            verdict = VERDICTS[number % len(VERDICTS)]
            waits_s = chance.uniform(0, 0.002), chance.uniform(0, 0.002)
            cancelling = client.begin(partial(answer_of_cancel, lease.job_id, waits_s[0]))
            settled = worker(partial(finish, lease, verdict, waits_s[1]))
            answer = cancelling.result(10)

            final = reload(lease.job_id).status
            outcomes[(answer, final)] = outcomes.get((answer, final), 0) + 1
            if answer == "conflict":
                assert settled == final
                assert final in TERMINAL
            else:
                assert final == "cancelled", (answer, settled, final)

    print(f"\ncancel against finish, {ROUNDS} rounds: {outcomes}")
    assert len(outcomes) > 2, "the race was never a race"
    final_states = dict(Job.objects.values_list("pk", "status"))
    _try_to_move_everything(committed_queue, leases)
    assert dict(Job.objects.values_list("pk", "status")) == final_states
    assert not DeadLetter.objects.exists()


def _try_to_move_everything(queue: Queue, leases: list[Lease]) -> None:
    """Whatever may still come: promotions, the reaper, other workers, late results."""
    promote_due(limit=1_000)
    reap_expired(limit=1_000)
    assert claim_from(queue, 1_000) == []
    for lease in leases:
        assert end(lease, Succeeded('"late"')).statuses == {}


def test_an_answered_cancel_of_a_running_job_is_never_followed_by_a_retry(committed_queue: Queue) -> None:
    job = make_job(committed_queue, max_attempts=5)
    lease = claim_one(committed_queue)

    assert cancel_job(job.pk, reason="stop") == "running"
    end(lease, Failed("boom", None, 0.0))

    assert promote_due(limit=10) == 0
    assert claim_from(committed_queue, 1) == []
    assert len(executions_of(job)) == 1


def test_of_cancel_and_claim_one_comes_first_and_the_answer_says_which(committed_queue: Queue) -> None:
    for _ in range(40):
        job = make_job(committed_queue)

        race: list[Callable[[], Any]] = [
            partial(cancel_job, job.pk, reason="race"), partial(claim_from, committed_queue, 1),
        ]  # fmt: skip
        answer, leases = run_together(race)

        assert (answer == "cancelled") == (leases == [])
        if leases:
            assert end(leases[0], Succeeded()).statuses == {str(job.pk): "cancelled"}
        assert reload(job).status == "cancelled"


def test_many_cancels_of_one_job_all_hear_the_same(committed_queue: Queue) -> None:
    running = make_job(committed_queue)
    claim_one(committed_queue)
    waiting = make_job(committed_queue)

    answers = run_together([partial(answer_of_cancel, str(waiting.pk), 0.0)] * 6)
    asked = run_together([partial(answer_of_cancel, str(running.pk), 0.0)] * 6)

    assert sorted(answers) == [JobStatus.CANCELLED] + ["conflict"] * 5
    assert asked == ["running"] * 6
