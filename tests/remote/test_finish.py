"""Ends of attempts over HTTP: every outcome, sent twice, sent late."""

from __future__ import annotations

from typing import Any

import pytest

from dlq.models import DeadLetter
from jobs.decisions import NOT_RETRYABLE
from jobs.lifecycle.cancel import cancel_job
from jobs.models import Job, JobExecution
from tests.factories import executions_of, make_job, make_jobs, reload, status_of
from tests.remote.conftest import ended, lapse_all, new_id, proof, statuses

OUTCOMES: dict[str, Any] = {
    "completed": ({"result": {"n": 1}, "ran_ms": 12.5}, "completed", "completed"),
    "failed": ({"error": {"type": "OSError", "message": "gone", "stack": "line 1"}}, "scheduled", "failed"),
    "snoozed": ({"retry_after_s": 30}, "scheduled", "snoozed"),
    "released": ({}, "queued", "interrupted"),
    "cancelled": ({"error": {"message": "enough"}}, "cancelled", "cancelled"),
}


@pytest.mark.parametrize("outcome", list(OUTCOMES))
def test_each_outcome_is_applied_once_and_sending_it_again_is_safe(remote, queue, outcome):
    more, next_status, history = OUTCOMES[outcome]
    make_job(queue)
    [job] = remote.take()

    first = remote.finish(ended(job, outcome, **more))
    again = remote.finish(ended(job, outcome, **more))

    assert first.json()["results"] == [
        {"id": job["id"], "status": "applied", "job_status": next_status, "message": None}
    ]
    assert statuses(again) == ["already_applied"]
    assert status_of(job["id"]) == next_status
    [execution] = executions_of(job["id"])
    assert (execution.status, str(execution.pk)) == (history, job["lease_token"])
    assert reload(job["id"]).attempt_count == (0 if outcome in ("snoozed", "released") else 1)


def test_a_result_and_an_error_are_kept(remote, queue):
    make_jobs(queue, 2)
    [good, bad] = remote.take(max_jobs=2)
    error = {"type": "OSError", "message": "at pk_live_abc", "stack": "s\0", "retry_after_s": 3600}

    remote.finish(ended(good, result=[1, {"a": None}], ran_ms=1500), ended(bad, "failed", error=error))

    assert reload(good["id"]).result == [1, {"a": None}]
    [execution] = executions_of(good["id"])
    assert execution.duration_ms == 1500
    [failed] = executions_of(bad["id"])
    assert (failed.error_message, failed.error_stack) == ("OSError: at ***", "s\ufffd")
    late = reload(bad["id"])
    assert 3500 < (late.run_at - late.updated_at).total_seconds() < 3700


def test_what_can_not_be_retried_goes_to_the_dead_letters_at_once(remote, queue):
    make_job(queue, max_attempts=9)
    [job] = remote.take()

    answer = remote.finish(ended(job, "failed", error={"message": "no such user", "retryable": False}))

    assert answer.json()["results"][0]["job_status"] == "dead_letter"
    letter = DeadLetter.objects.get()
    assert (letter.failure_reason, letter.last_error, letter.attempt_count) == (NOT_RETRYABLE, "no such user", 1)


def test_attempts_are_exhausted_as_ever(remote, queue):
    make_job(queue, max_attempts=1)
    [job] = remote.take()

    assert remote.finish(ended(job, "failed")).json()["results"][0]["job_status"] == "dead_letter"


def test_a_released_job_is_handed_out_again_with_a_new_token(remote, queue):
    make_job(queue)
    [job] = remote.take()
    remote.finish(ended(job, "released"))

    [again] = remote.take()

    assert (again["id"], again["attempt"]) == (job["id"], 1)
    assert again["lease_token"] != job["lease_token"]
    assert again["fencing_number"] == 2


def test_a_stale_finish_is_refused_with_409_and_changes_nothing(remote, queue):
    make_job(queue)
    [job] = remote.take()
    lapse_all()
    before = Job.objects.values().get()

    answer = remote.finish(ended(job))

    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert answer.json()["details"] == [{"field": "results[0]", "message": "lease_lost"}]
    assert Job.objects.values().get() == before
    assert [e.status for e in executions_of(job["id"])] == ["lost"]


def test_another_outcome_than_the_first_is_no_repetition(remote, queue):
    make_job(queue)
    [job] = remote.take()
    remote.finish(ended(job))

    assert remote.finish(ended(job, "failed")).status_code == 409
    assert status_of(job["id"]) == "completed"


def test_each_result_of_a_batch_is_answered(remote, queue):
    make_jobs(queue, 4)
    [fresh, done, stale, odd] = remote.take(max_jobs=4)
    remote.finish(ended(done))
    Job.objects.filter(pk=stale["id"]).update(lease_token=new_id())

    answer = remote.finish(
        ended(fresh),
        ended(done),
        ended(stale),
        ended(odd, result={"x": "a\0b"}),
        ended(fresh),
        {**ended(fresh), "id": done["id"]},
    )

    assert statuses(answer) == ["applied", "already_applied", "lease_lost", "invalid", "applied", "lease_lost"]
    assert "U+0000" in answer.json()["results"][3]["message"]
    assert status_of(odd["id"]) == "running"


def test_a_thousand_in_one_call(remote, queue, django_assert_max_num_queries):
    make_jobs(queue, 1_000)
    jobs = [job for _ in range(10) for job in remote.take(max_jobs=100)]

    with django_assert_max_num_queries(6):
        answer = remote.finish(*[ended(job, result={"i": i}) for i, job in enumerate(jobs)])

    assert set(statuses(answer)) == {"applied"}
    assert JobExecution.objects.count() == 1_000


def test_after_a_cancel_the_job_ends_as_cancelled(remote, queue):
    make_job(queue)
    [job] = remote.take()
    cancel_job(reload(job["id"]).pk, reason="no")

    answer = remote.finish(ended(job))

    assert answer.json()["results"][0]["job_status"] == "cancelled"
    assert statuses(remote.finish(ended(job))) == ["already_applied"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"outcome": "succeeded"}, "results[0].outcome"),
        ({"outcome": "snoozed"}, "results[0].retry_after_s"),
        ({"outcome": "completed", "retry_after_s": 1}, "results[0].retry_after_s"),
        ({"outcome": "completed", "error": {}}, "results[0].error"),
        ({"outcome": "failed", "result": 1}, "results[0].result"),
        ({"outcome": "failed", "error": {"retryable": "no"}}, "results[0].error.retryable"),
        ({"outcome": "completed", "lease_token": "x"}, "results[0].lease_token"),
    ],
)
def test_a_malformed_result_names_its_field_and_nothing_is_applied(remote, queue, more, field):
    make_job(queue)
    [job] = remote.take()

    answer = remote.finish({**proof(job), **more})

    assert (answer.status_code, answer.json()["details"][0]["field"]) == (400, field)
    assert status_of(job["id"]) == "running"
