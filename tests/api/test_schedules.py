"""Schedules through the API: create, change, pause, trigger, ledger, backfill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.db.models.functions import Now

from jobs.models import Job, ScheduledJob, ScheduleFire
from jobs.services.firing import fire_due
from queues.services import create_retry_policy
from scheduler_project.lib.ids import uuid7
from tests.factories import make_project, make_queue, path_of
from tests.personas import field_of


def _create(api, queue, **fields: Any):
    body = {"queue_id": str(queue.pk), "name": "nightly", "cron_expression": "0 3 * * *", "job_type": "noop"}
    return api.post("scheduled-jobs", {**body, **fields})


@pytest.fixture
def schedule(as_machine, queue) -> dict[str, Any]:
    body: dict[str, Any] = _create(as_machine, queue).json()
    return body


def test_a_schedule_shows_its_next_run(as_machine, queue):
    answer = _create(as_machine, queue, timezone="Europe/Berlin", payload_template={"n": 12345678901234567890123})

    body = answer.json()
    assert answer.status_code == 201
    assert answer["Location"] == f"/api/scheduled-jobs/{body['id']}"
    assert (body["is_active"], body["is_paused"], body["timezone"]) == (True, False, "Europe/Berlin")
    assert datetime.fromisoformat(body["next_run_at"]) > datetime.now(UTC)
    read = as_machine.get(f"scheduled-jobs/{body['id']}")
    assert read.json() == body
    assert b"12345678901234567890123" in read.content
    assert "payload_template" not in as_machine.get("scheduled-jobs").json()["items"][0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cron_expression", "0 0 31 2 *"),
        ("cron_expression", "every day"),
        ("timezone", "Europe"),
        ("timezone", "PST"),
        ("payload_template", "a\u0000b"),
        ("payload_template", "\ud83d"),
        ("job_type", "a b"),
        ("name", ""),
        ("misfire_policy", "explode"),
        ("misfire_grace_secs", -1),
        ("misfire_grace_secs", 2**40),
        ("jitter_secs", True),
        ("max_fires", 0),
        ("timeout_s", 0),
        ("timeout_s", "5"),
        ("starts_at", "2026-01-01"),
        ("run_once_at", "2100-01-01T00:00:00Z"),
        ("retry_policy_id", "x"),
        ("is_active", False),
        ("next_run_at", "2100-01-01T00:00:00Z"),
    ],
)
def test_bad_fields_are_named(as_machine, queue, field, value):
    answer = _create(as_machine, queue, **{field: value})

    assert answer.status_code == 400
    assert field_of(answer) in {field, "cron_expression"}


def test_its_jobs_have_its_timeout(as_machine, queue):
    timed, other = _create(as_machine, queue, timeout_s=2.5).json(), _create(as_machine, queue, name="other").json()
    assert (timed["timeout_s"], other["timeout_s"]) == (2.5, None)
    for one in (timed, other):
        as_machine.post(f"scheduled-jobs/{one['id']}/trigger")

    assert set(Job.objects.values_list("scheduled_job_id", "timeout_s")) == {
        (UUID(timed["id"]), 2.5),
        (UUID(other["id"]), None),
    }


def test_a_policy_of_another_project_is_refused(as_machine, queue):
    policy = create_retry_policy(make_project(), name="p")

    answer = _create(as_machine, queue, retry_policy_id=str(policy.pk))

    assert (answer.status_code, field_of(answer)) == (400, "retry_policy_id")


def test_names_are_unique_in_a_project(as_machine, queue, schedule):
    again = _create(as_machine, queue)

    assert (again.status_code, field_of(again)) == (409, "name")


def test_a_change_of_the_times_moves_the_next_run(as_machine, schedule):
    answer = as_machine.send("patch", f"scheduled-jobs/{schedule['id']}", '{"cron_expression": "0 4 * * *"}')

    assert answer.status_code == 200
    assert answer.json()["next_run_at"][11:16] == "04:00"
    bad = as_machine.send("patch", f"scheduled-jobs/{schedule['id']}", '{"cron_expression": "0 0 31 2 *"}')
    assert (bad.status_code, field_of(bad)) == (400, "cron_expression")
    assert as_machine.get(f"scheduled-jobs/{schedule['id']}").json() == answer.json()


@pytest.mark.parametrize("name", ["queue", "queue_id"])
def test_a_schedule_never_moves_to_a_queue_of_others(as_machine, as_owner, schedule, name):
    foreign = make_queue()
    value = path_of(foreign) if name == "queue" else str(foreign.pk)
    unknown = f"{value}x" if name == "queue" else str(uuid7())

    answers = [
        as_machine.send("patch", f"scheduled-jobs/{schedule['id']}", f'{{"{name}": "{wanted}"}}')
        for wanted in (value, unknown)
    ]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert answers[0].content == answers[1].content
    assert field_of(answers[0]) == name


def test_it_moves_within_its_project(as_machine, queue, schedule):
    other = make_queue(queue.project)

    answer = as_machine.send("patch", f"scheduled-jobs/{schedule['id']}", f'{{"queue_id": "{other.pk}"}}')

    assert answer.json()["queue_id"] == str(other.pk)


def test_switching_and_pausing(as_machine, as_owner, owner, schedule):
    path = f"scheduled-jobs/{schedule['id']}"

    off = as_machine.post(f"{path}/deactivate").json()
    on = as_machine.post(f"{path}/activate").json()
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    paused = as_owner.post(f"{path}/pause", {"reason": "migration", "until": until}).json()
    resumed = as_machine.post(f"{path}/resume").json()

    assert (off["is_active"], off["next_run_at"]) == (False, None)
    assert (on["is_active"], on["next_run_at"]) == (True, schedule["next_run_at"])
    assert (paused["is_paused"], paused["paused_reason"], paused["paused_by"]) == (True, "migration", str(owner.pk))
    assert (resumed["is_paused"], resumed["paused_until"]) == (False, None)
    assert [item["id"] for item in as_machine.get("scheduled-jobs", is_active="true").json()["items"]] == [on["id"]]
    assert as_machine.get("scheduled-jobs", is_active="false").json()["items"] == []


def test_triggering_runs_it_now_and_the_ledger_says_so(as_member, schedule):
    answer = as_member.post(f"scheduled-jobs/{schedule['id']}/trigger")

    job = Job.objects.get()
    assert (answer.status_code, answer.json()) == (201, {"job_id": str(job.pk)})
    ledger = as_member.get(f"scheduled-jobs/{schedule['id']}/fires").json()
    assert [(fire["outcome"], fire["reason"], fire["job_id"]) for fire in ledger["items"]] == [
        ("fired", "manual", str(job.pk))
    ]
    assert ledger["counts"]["promised"] == 0
    assert ledger["window"]["is_default"] is True


def test_the_ledger_counts_promises_and_backfill_delivers_them(as_machine, schedule):
    path = f"scheduled-jobs/{schedule['id']}"
    as_machine.post(f"{path}/pause")
    ScheduledJob.objects.update(next_run_at=F("next_run_at") - timedelta(days=3))
    fire_due()
    window = {
        "since": (datetime.now(UTC) - timedelta(days=5)).isoformat(),
        "until": datetime.now(UTC).isoformat(),
        "only_missed": True,
    }

    before = as_machine.get(f"{path}/fires").json()["counts"]
    dry = as_machine.post(f"{path}/backfill", {**window, "dry_run": True}).json()
    done = as_machine.post(f"{path}/backfill", window).json()
    after = as_machine.get(f"{path}/fires").json()["counts"]

    missed = before["promised"]
    assert missed in {2, 3}
    assert (before["delivered"], before["skipped_paused"]) == (0, missed)
    assert (dry["count"], dry["job_ids"], len(done["job_ids"])) == (missed, [], missed)
    assert (after["promised"], after["delivered"]) == (missed, missed)
    assert as_machine.post(f"{path}/backfill", window).json()["count"] == 0
    assert Job.objects.count() == missed


@pytest.mark.parametrize(
    ("since", "until"),
    [("2020-01-02T00:00:00Z", "2020-01-01T00:00:00Z"), ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z")],
)
def test_backfill_refuses_odd_windows(as_machine, schedule, since, until):
    answer = as_machine.post(f"scheduled-jobs/{schedule['id']}/backfill", {"since": since, "until": until})

    assert (answer.status_code, field_of(answer)) == (400, "until")


def test_pages_of_the_ledger_follow_a_cursor(as_machine, schedule):
    row = ScheduledJob.objects.get()
    for days in range(5):
        ScheduleFire.objects.create(
            project_id=row.project_id,
            scheduled_job=row,
            due_at=Now() - timedelta(days=days + 1),
            outcome="skipped",
            reason="misfire",
        )
    path, seen, cursor = f"scheduled-jobs/{schedule['id']}/fires", [], None
    while True:
        page = as_machine.get(path, limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += [fire["due_at"] for fire in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert len(seen) == len(set(seen)) == 5
    assert seen == sorted(seen, reverse=True)


def test_preview_shows_the_clock_change_and_what_surprises(as_machine):
    body = {"cron_expression": "30 2 * * *", "timezone": "Europe/Berlin", "after": "2026-03-28T12:00:00Z", "count": 2}

    answer = as_machine.post("scheduled-jobs/preview", body)

    assert answer.status_code == 200
    found = answer.json()
    assert found["sentence"] == "At 02:30"
    assert found["fires"][0]["at"] == "2026-03-29T01:00:00Z"
    assert found["fires"][0]["local"] == "2026-03-29T03:00:00+02:00"
    assert "forward by 1 h" in found["fires"][0]["note"]


def test_preview_names_every_field_that_is_wrong(as_machine):
    answer = as_machine.post("scheduled-jobs/preview", {"cron_expression": "0 0 31 2 *", "timezone": "Mars/Base"})

    assert answer.status_code == 400
    assert {error["field"] for error in answer.json()["details"]} == {"cron_expression", "timezone"}
