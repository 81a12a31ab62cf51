"""Operations with care: a canary first, no faster than a pace, stopped when the canary fails again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from jobs.decisions import Failed, Snoozed, Succeeded
from jobs.models import Job, Operation
from jobs.scheduler.duties import operations as duty
from jobs.services.operation_steps import run_step
from scheduler_project.lib.sql import database_now
from tests.factories import claim_one, end, job_in
from tests.personas import field_of


@pytest.fixture
def dead(queue):
    """Makes dead letters; the jobs, in their order."""

    def dead(count: int, **fields):
        return [job_in("dead_letter", queue, **fields).job for _ in range(count)]

    return dead


def begun(as_machine, action="redrive", **fields):
    answer = as_machine.post("operations", {"action": action, "filter": {}, **fields})
    assert answer.status_code == 202, answer.content
    return answer.json()["id"]


def steps(operation_id) -> float:
    """All the steps that can be done now; how long the next one has to wait, 0.0 if nobody knows."""
    while (wait_s := run_step(operation_id)) == 0:
        pass
    return wait_s or 0.0


def counted(status: str) -> int:
    return Job.objects.filter(status=status).count()


def shown(as_machine, operation_id):
    return as_machine.get(f"operations/{operation_id}").json()


@pytest.mark.parametrize("action", ["redrive", "retry"])
def test_the_rest_waits_until_the_canary_has_completed(as_machine, queue, dead, action):
    jobs = dead(5)
    operation_id = begun(as_machine, action, canary=2)
    assert shown(as_machine, operation_id)["canary_state"] == "pending"

    assert not steps(operation_id)
    assert (counted("queued"), counted("dead_letter")) == (2, 3)
    end(claim_one(queue), Succeeded())
    assert not steps(operation_id)
    assert counted("dead_letter") == 3
    waiting = shown(as_machine, operation_id)
    assert (waiting["state"], waiting["canary_state"], waiting["changed"]) == ("running", "waiting", 2)
    assert waiting["canary_jobs"] == [str(job.pk) for job in jobs[:2]]

    end(claim_one(queue), Succeeded())
    assert not steps(operation_id)
    assert counted("dead_letter") == 0
    done = shown(as_machine, operation_id)
    assert (done["state"], done["canary_state"], done["changed"]) == ("completed", "passed", 5)
    assert done["canary_passed_at"]


def test_one_attempt_of_the_canary_that_fails_stops_it_with_the_reason(as_machine, queue, dead):
    jobs = dead(3, max_attempts=1)
    Job.objects.update(max_attempts_override=9)  # it would be tried again for a long time
    operation_id = begun(as_machine, canary=1)
    steps(operation_id)
    end(claim_one(queue), Failed("still no room"))
    assert Job.objects.get(pk=jobs[0].pk).status == "scheduled"

    assert not steps(operation_id)
    stopped = shown(as_machine, operation_id)
    assert (stopped["state"], stopped["canary_state"], stopped["changed"]) == ("stopped", "failed", 1)
    assert stopped["stopped_because"] == f"The canary {jobs[0].pk} failed again: still no room"
    assert stopped["ended_at"]
    assert counted("dead_letter") == 2
    assert as_machine.post(f"operations/{operation_id}/abort").status_code == 409


def test_a_canary_that_is_cancelled_or_gone_stops_it(as_machine, queue, dead):
    dead(3)
    cancelled, gone = begun(as_machine, canary=1), begun(as_machine, canary=1)
    steps(cancelled)
    steps(gone)
    first, second = Job.objects.filter(status="queued").order_by("id")
    assert as_machine.post(f"jobs/{first.pk}/cancel").status_code == 200
    Job.objects.filter(pk=second.pk).delete()
    steps(cancelled)
    steps(gone)

    assert (
        shown(as_machine, cancelled)["stopped_because"]
        == f"The canary {first.pk} is cancelled: Cancelled through the API."
    )
    assert shown(as_machine, gone)["stopped_because"].startswith(f"The canary {second.pk} is gone")


def test_a_canary_that_lost_its_worker_or_snoozes_is_waited_for(as_machine, queue, dead):
    dead(2)
    operation_id = begun(as_machine, canary=1)
    steps(operation_id)
    end(claim_one(queue), Snoozed(60))
    steps(operation_id)
    assert shown(as_machine, operation_id)["canary_state"] == "waiting"
    Job.objects.filter(status="scheduled").update(attempt_count=1, lost_count=1)
    steps(operation_id)

    assert shown(as_machine, operation_id)["canary_state"] == "waiting"


def test_what_is_not_there_any_more_is_no_canary(as_machine, queue, dead):
    jobs = dead(4)
    operation_id = begun(as_machine, canary=2)
    for job in jobs[:2]:
        as_machine.post(f"jobs/{job.pk}/retry")
    steps(operation_id)

    assert shown(as_machine, operation_id)["canary_jobs"] == [str(job.pk) for job in jobs[2:]]


def test_the_pace_is_kept_by_the_databases_clock(as_machine, queue, dead):
    dead(6)
    operation_id = begun(as_machine, pace=2, pace_per="hour")

    wait_s = steps(operation_id)
    assert counted("queued") == 1
    assert 1_790 < wait_s <= 1_800
    assert shown(as_machine, operation_id)["next_at"]
    assert steps(operation_id) > 1_700
    assert counted("queued") == 1

    # As if half an hour had passed.
    Operation.objects.update(next_at=F("next_at") - timedelta(seconds=1_800))
    assert steps(operation_id) > 1_700
    assert counted("queued") == 2


def test_what_a_pace_was_not_used_for_is_not_made_up_for(as_machine, queue, dead):
    dead(9)
    operation_id = begun(as_machine, pace=3, pace_per="second")
    run_step(operation_id)
    Operation.objects.update(next_at=database_now() - timedelta(hours=1))  # the scheduler was away
    run_step(operation_id)

    assert counted("queued") == 1 + 4  # a second's worth, and the one that is due


def test_the_round_comes_again_when_the_pace_says_so(as_machine, queue, dead):
    dead(3)
    begun(as_machine, pace=2, pace_per="second")
    work = duty.duty(60.0)

    while (wait_s := work.run()) == 0:  # a slow machine takes more than one round
        pass
    assert wait_s is not None
    assert 0 < wait_s <= 0.5
    assert counted("queued") == 1


def test_an_abort_ends_it_while_it_waits(as_machine, queue, dead):
    dead(3)
    for fields in ({"canary": 1}, {"pace": 1, "pace_per": "hour"}):
        operation_id = begun(as_machine, **fields)
        steps(operation_id)
        assert as_machine.post(f"operations/{operation_id}/abort").json()["state"] == "aborted"
        assert run_step(operation_id) is None
    assert counted("dead_letter") == 1


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"action": "cancel", "canary": 1}, "canary", "is for retry and redrive: cancel makes nothing run"),
        ({"action": "discard", "pace": 1}, "pace", "is for retry and redrive: discard makes nothing run"),
        ({"canary": 0}, "canary", "1"),
        ({"canary": 101}, "canary", "100"),
        ({"canary": True}, "canary", "must be a whole number"),
        ({"pace": 10_001}, "pace", "10000"),
        ({"pace": 1.5}, "pace", "must be a whole number"),
        ({"pace": 1, "pace_per": "day"}, "pace_per", "must be one of second, minute, hour"),
        ({"pace_per": "hour"}, "pace_per", "give pace too"),
    ],
)
def test_bad_care_names_the_field_and_what_is_allowed(as_machine, fields, field, says):
    answer = as_machine.post("operations", {"action": "redrive", "filter": {}, **fields})

    assert (answer.status_code, field_of(answer)) == (400, field)
    assert says in answer.json()["details"][0]["message"]
