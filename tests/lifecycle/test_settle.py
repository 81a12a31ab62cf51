"""settle: what each verdict makes of the job, and what it leaves in the history."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now

from dlq.models import DeadLetter
from jobs.decisions import (
    EXHAUSTED,
    Cancelled,
    Discarded,
    Failed,
    Interrupted,
    Lost,
    Snoozed,
    Succeeded,
    Unbegun,
    Verdict,
)
from jobs.lease import Ending
from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.settle import Settled, settle
from jobs.models import Job, JobExecution
from orgs.models import Project
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, claim_one, end, executions_of, make_due, make_job, make_jobs, make_queue, reload

pytestmark = pytest.mark.django_db

ONCE = {"max_attempts": 1}
#: verdict, fields of the job, its next status, attempts used, the execution's status (None: no execution)
VERDICTS: list[tuple[Verdict, dict[str, Any], str, int, str | None]] = [
    (Succeeded('{"a":1}'), {}, "completed", 1, "completed"),
    (Succeeded(), {}, "completed", 1, "completed"),
    (Failed("boom", "stack"), {}, "scheduled", 1, "failed"),
    (Failed("boom", "stack"), ONCE, "dead_letter", 1, "failed"),
    (Failed("later", None, 5.0), {}, "scheduled", 1, "failed"),
    (Snoozed(30), {}, "scheduled", 0, "snoozed"),
    (Snoozed(30), ONCE, "scheduled", 0, "snoozed"),
    (Discarded("no use"), {}, "failed", 1, "failed"),
    (Cancelled("stopped"), {}, "cancelled", 1, "cancelled"),
    (Interrupted(), {}, "queued", 0, "interrupted"),
    (Interrupted(), ONCE, "queued", 0, "interrupted"),
    (Unbegun(), {}, "queued", 0, None),
    (Lost(), {}, "scheduled", 1, "lost"),
    (Lost(), ONCE, "dead_letter", 1, "lost"),
]
NAMES = [f"{type(v).__name__}-{s}" for v, _, s, _, _ in VERDICTS]


@pytest.mark.parametrize(("verdict", "fields", "status", "used", "outcome"), VERDICTS, ids=NAMES)
def test_each_verdict_leads_to_its_state_and_is_recorded(
    queue: Queue, verdict: Verdict, fields: dict[str, Any], status: str, used: int, outcome: str | None
) -> None:
    lease = claim_one_of(queue, **fields)

    settled = end(lease, verdict)

    job = reload(lease.job_id)
    assert settled == Settled({lease.job_id: status}, [])
    assert (job.status, job.attempt_count) == (status, used)
    assert (job.locked_by, job.locked_at, job.lease_token, job.lease_expires_at) == (None, None, None, None)
    assert (job.completed_at is not None) == (status in ("completed", "failed", "dead_letter", "cancelled"))
    attempts = [(execution.status, execution.attempt_number) for execution in executions_of(job)]
    assert attempts == ([(outcome, 1)] if outcome else [])
    assert DeadLetter.objects.count() == (status == "dead_letter")


def claim_one_of(queue: Queue, **fields: Any) -> Any:
    make_job(queue, **fields)
    return claim_one(queue)


@pytest.mark.parametrize("result", ['{"a":[1,"ä"]}', "0", "false", "null", '""', "12345678901234567890123"])
def test_a_result_is_kept_on_the_job_and_in_its_execution(queue: Queue, result: str) -> None:
    import json

    lease = claim_one_of(queue)

    end(lease, Succeeded(result))

    [execution] = executions_of(lease.job_id)
    assert reload(lease.job_id).result == execution.result == json.loads(result)


def test_hostile_errors_and_results_are_kept_exactly(queue: Queue) -> None:
    text = "'); drop table jobs; -- %s %(x)s {\"}\\ \n\t 日本 🎈 NULL"
    failing, completing = claim_one_of(queue), claim_one_of(queue)

    end(failing, Failed(text, text))
    end(completing, Succeeded('"\'); %s {}\\\\ 🎈"'))

    [execution] = executions_of(failing.job_id)
    assert (reload(failing.job_id).error_message, execution.error_message, execution.error_stack) == (text,) * 3
    assert reload(completing.job_id).result == "'); %s {}\\ 🎈"


def test_a_nul_in_an_error_does_not_spoil_the_batch(queue: Queue) -> None:
    bad, good = claim_one_of(queue), claim_one_of(queue)

    settle([Ending.of(bad, Failed("a\0b\ud83d", "\0"), str(uuid7())), Ending.of(good, Succeeded(), str(uuid7()))])

    assert reload(bad.job_id).error_message == "a\N{REPLACEMENT CHARACTER}b?"
    assert reload(good.job_id).status == "completed"


def test_the_history_says_who_when_and_how_long(queue: Queue) -> None:
    worker_id = uuid7()
    make_job(queue)
    lease = claim_one(queue, worker_id=worker_id)

    end(lease, Succeeded(), ran_ms=0.5, worker_id=worker_id)

    [execution] = executions_of(lease.job_id)
    assert (str(execution.pk), execution.worker_id) == (lease.token, worker_id)
    assert (execution.attempt_number, execution.fencing_number, execution.duration_ms) == (1, 1, 0.5)
    assert execution.project_id == queue.project_id
    assert execution.started_at is not None
    assert execution.claimed_at <= execution.started_at <= execution.finished_at <= execution.created_at


@pytest.mark.parametrize("ran_ms", [0.0, 3_600_000.0])
def test_no_attempt_starts_or_ends_before_it_was_claimed(queue: Queue, ran_ms: float) -> None:
    lease = claim_one_of(queue)

    settle([Ending.of(lease, Succeeded(), str(uuid7()), ran_ms)._replace(ended_at=0.0)])  # long before, it says

    [execution] = executions_of(lease.job_id)
    assert execution.started_at is not None
    assert execution.claimed_at <= execution.started_at <= execution.finished_at


def test_an_attempt_nobody_saw_begin_has_no_start(queue: Queue) -> None:
    lease = claim_one_of(queue)

    end(lease, Lost(), ran_ms=None)

    [execution] = executions_of(lease.job_id)
    assert (execution.started_at, execution.duration_ms) == (None, None)


def test_attempts_are_counted_through_retries_until_the_last_is_buried(queue: Queue) -> None:
    job = make_job(queue, max_attempts=3, payload={"to": "ann"})

    for number in (1, 2, 3):
        lease = claim_one(queue)
        assert lease.attempt == number
        end(lease, Failed(f"boom {number}"))
        if number < 3:
            make_due(job)

    assert (reload(job).status, reload(job).attempt_count) == ("dead_letter", 3)
    assert [(e.attempt_number, e.error_message) for e in executions_of(job)] == [(n, f"boom {n}") for n in (1, 2, 3)]
    letter = DeadLetter.objects.get()
    assert (letter.job_id, letter.queue_id, letter.project_id) == (job.pk, queue.pk, queue.project_id)
    assert (letter.job_type, letter.payload_snapshot) == ("noop", {"to": "ann"})
    assert (letter.failure_reason, letter.last_error, letter.attempt_count) == (EXHAUSTED, "boom 3", 3)
    assert (letter.resolved, letter.resolved_at, letter.resolution_action) == (False, None, None)


def test_a_retry_waits_as_the_rule_says_by_the_databases_clock(project: Project) -> None:
    policy = RetryPolicy.objects.create(
        project=project, name="p", strategy="linear", base_delay_ms=60_000, jitter=False, max_attempts=9
    )
    queue = make_queue(project, default_retry_policy=policy)
    job = make_job(queue)

    for number in (1, 2, 3):
        end(claim_one(queue), Failed("boom"))
        waits_s = (reload(job).run_at - reload(job).updated_at).total_seconds()
        assert waits_s == pytest.approx(60 * number)
        make_due(job)


def test_the_jobs_own_policy_and_number_of_attempts_win(project: Project) -> None:
    patient = RetryPolicy.objects.create(
        project=project, name="patient", max_attempts=9, jitter=False, strategy="fixed", base_delay_ms=7_000
    )
    hasty = RetryPolicy.objects.create(project=project, name="hasty", max_attempts=1)
    queue = make_queue(project, default_retry_policy=hasty)
    by_queue = make_job(queue)
    by_policy = make_job(queue, retry_policy_id=patient.pk)
    by_number = make_job(queue, retry_policy_id=patient.pk, max_attempts=1)
    no_policy_at_all = make_job(make_queue(project))
    leases = [*claim_from(queue, 5), *claim_from(no_policy_at_all.queue, 5)]

    settle([Ending.of(lease, Failed("boom"), str(uuid7())) for lease in leases])

    statuses = [reload(job).status for job in (by_queue, by_policy, by_number, no_policy_at_all)]
    assert statuses == ["dead_letter", "scheduled", "dead_letter", "scheduled"]
    assert (reload(by_policy).run_at - reload(by_policy).updated_at).total_seconds() == pytest.approx(7)


def test_a_retry_keeps_its_due_time_only_while_it_waits(queue: Queue) -> None:
    job = make_job(queue)
    end(claim_one(queue), Interrupted())

    assert reload(job).run_at == job.run_at


def test_a_mixed_batch_is_settled_in_one_go_each_by_its_own(queue: Queue) -> None:
    expected = {}
    endings = []
    for verdict, fields, status, _, _ in VERDICTS:
        lease = claim_one_of(queue, **fields)
        expected[lease.job_id] = status
        endings.append(Ending.of(lease, verdict, str(uuid7()), 1.0))
    endings = [*endings[7:], *endings[:7]]

    settled = settle(endings)

    assert (settled.statuses, settled.lost) == (expected, [])
    assert {str(pk): status for pk, status in Job.objects.values_list("pk", "status")} == expected
    assert JobExecution.objects.count() == len(endings) - 1


def test_a_large_batch_is_settled(queue: Queue) -> None:
    make_jobs(queue, 1_500)
    endings = [Ending.of(lease, Succeeded('{"n":1}'), str(uuid7()), 1.0) for lease in claim_from(queue, 2_000)]

    settled = settle(endings)

    assert set(settled.statuses.values()) == {"completed"}
    assert JobExecution.objects.filter(status="completed").count() == 1_500


def test_nothing_to_settle_asks_nothing(django_assert_num_queries: Any, db: None) -> None:
    with django_assert_num_queries(0):
        assert settle([]) == Settled({}, [])


@pytest.mark.parametrize(("verdict", "fields", "status", "used", "outcome"), VERDICTS, ids=NAMES)
def test_after_a_cancel_request_every_end_is_cancelled_and_nothing_is_retried_or_buried(
    queue: Queue, verdict: Verdict, fields: dict[str, Any], status: str, used: int, outcome: str | None
) -> None:
    lease = claim_one_of(queue, **fields)
    cancel_job(Job.objects.get().pk, reason="not needed")

    settled = end(lease, verdict)

    job = reload(lease.job_id)
    assert settled.statuses == {lease.job_id: "cancelled"}
    assert (job.status, job.lease_token) == ("cancelled", None)
    assert job.completed_at is not None
    assert [execution.status for execution in executions_of(job)] == ([outcome] if outcome else [])
    assert not DeadLetter.objects.exists()


def test_settling_wakes_no_job_of_another_project(queue: Queue) -> None:
    other = make_job(make_queue())
    lease = claim_one_of(queue)

    end(lease, Succeeded())

    assert reload(other).status == "queued"
    assert not Job.objects.filter(status="completed", completed_at__gt=Now()).exists()
