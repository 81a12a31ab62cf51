"""Operations: frozen when asked for, carried out in steps, gone on with after a crash."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dlq.models import DeadLetter
from jobs.lifecycle.cancel import cancel_jobs
from jobs.models import Job, Operation
from jobs.scheduler.duties import operations as duty
from jobs.services import operation_steps
from jobs.services.operation_steps import run_step
from scheduler_project.lib.ids import moment_of, uuid7
from tests.factories import claim_one, job_in, make_job, make_jobs, make_queue, status_of
from tests.personas import field_of


def _run(operation_id) -> dict[str, int]:
    steps = 0
    while run_step(operation_id) is not None:
        steps += 1
    row = Operation.objects.get(pk=operation_id)
    return {
        "matched": row.matched,
        "changed": row.changed,
        "skipped": row.skipped,
        "failed": row.failed,
        "steps": steps,
    }


def test_cancelling_by_filter_takes_what_there_was_and_no_more(as_machine, queue):
    make_jobs(queue, 5)
    held = claim_one(queue)
    other = make_job(make_queue(queue.project))

    answer = as_machine.post("operations", {"action": "cancel", "filter": {"queue_id": str(queue.pk)}, "reason": "no"})
    later = make_job(queue)

    assert answer.status_code == 202
    body = answer.json()
    assert answer["Location"] == f"/api/operations/{body['id']}"
    assert (body["state"], body["estimate"], body["progress"]) == ("pending", 5, 0.0)
    assert _run(body["id"]) == {"matched": 5, "changed": 5, "skipped": 0, "failed": 0, "steps": 0}
    assert Job.objects.filter(queue=queue, status="cancelled", error_message="no").count() == 4
    assert Job.objects.get(pk=held.job_id).cancel_requested_at is not None
    assert status_of(other) == status_of(later) == "queued"
    done = as_machine.get(f"operations/{body['id']}").json()
    assert (done["state"], done["progress"], done["changed"]) == ("completed", 1.0, 5)
    assert done["started_at"]
    assert done["ended_at"]


def test_steps_move_the_cursor_and_a_crash_repeats_nothing(as_machine, queue, monkeypatch):
    make_jobs(queue, 7)
    monkeypatch.setattr(operation_steps, "STEP", 3)
    operation_id = as_machine.post("operations", {"action": "cancel", "filter": {}}).json()["id"]

    assert run_step(operation_id) == 0
    assert Operation.objects.get(pk=operation_id).changed == 3
    with monkeypatch.context() as broken:
        broken.setattr(operation_steps, "_move", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_step(operation_id)
    assert Job.objects.filter(status="cancelled").count() == 3

    assert _run(operation_id)["changed"] == 7
    assert Job.objects.filter(status="cancelled").count() == 7


def test_retry_takes_failed_and_dead_jobs_unless_told(as_machine, queue):
    failed, dead = job_in("failed", queue).job, job_in("dead_letter", queue).job
    done, stopped = job_in("completed", queue).job, job_in("cancelled", queue).job

    usual = as_machine.post("operations", {"action": "retry", "filter": {}}).json()["id"]
    assert _run(usual)["changed"] == 2
    assert [status_of(job) for job in (failed, dead, done, stopped)] == ["queued", "queued", "completed", "cancelled"]
    assert DeadLetter.objects.get().resolution_action == "requeued"

    told = as_machine.post("operations", {"action": "retry", "filter": {"status": "cancelled"}}).json()["id"]
    assert _run(told)["changed"] == 1
    assert status_of(stopped) == "queued"


def test_dead_letters_are_redriven_and_discarded(as_machine, queue):
    first, second = job_in("dead_letter", queue).job, job_in("dead_letter", queue, job_type="other").job

    discard = as_machine.post("operations", {"action": "discard", "filter": {"job_type": "other"}}).json()["id"]
    redrive = as_machine.post("operations", {"action": "redrive", "filter": {"queue_id": str(queue.pk)}}).json()["id"]
    assert _run(discard)["changed"] == 1
    assert _run(redrive) == {"matched": 1, "changed": 1, "skipped": 0, "failed": 0, "steps": 0}

    assert [status_of(first), status_of(second)] == ["queued", "dead_letter"]
    assert not DeadLetter.objects.filter(resolved=False).exists()


def test_a_list_of_ids_leaves_out_unknown_and_foreign_ones(as_machine, queue):
    done, mine, foreign = job_in("completed", queue).job, make_job(queue), make_job(make_queue())
    ids = [str(mine.pk), str(done.pk), str(foreign.pk), str(uuid7())]

    operation_id = as_machine.post("operations", {"action": "cancel", "ids": ids}).json()["id"]

    assert _run(operation_id) == {"matched": 2, "changed": 1, "skipped": 1, "failed": 0, "steps": 0}
    assert status_of(foreign) == "queued"


def test_a_dry_run_counts_and_changes_nothing(as_machine, queue):
    jobs = make_jobs(queue, 12)

    body = as_machine.post("operations", {"action": "cancel", "filter": {}, "dry_run": True}).json()

    assert body["dry_run"] is True
    assert (body["matched"]["count"], body["matched"]["is_capped"]) == (12, False)
    assert [row["id"] for row in body["matched"]["sample"]] == [str(job.id) for job in jobs[:10]]
    assert not Operation.objects.exists()


def test_times_and_types_narrow_it(as_machine, queue):
    old, new, other = make_job(queue), make_job(queue), make_job(queue, "other")
    split = moment_of(new.pk) + timedelta(milliseconds=1)
    Job.objects.filter(pk=old.pk)  # made before

    wanted = {"queue_id": str(queue.pk), "job_type": "noop", "created_to": split.isoformat()}
    found = as_machine.post("operations", {"action": "cancel", "filter": wanted, "dry_run": True}).json()["matched"]

    assert {row["id"] for row in found["sample"]} == {str(old.pk), str(new.pk)}
    assert str(other.pk) not in str(found)


def test_aborting_keeps_what_was_done(as_machine, queue, monkeypatch):
    make_jobs(queue, 4)
    monkeypatch.setattr(operation_steps, "STEP", 2)
    operation_id = as_machine.post("operations", {"action": "cancel", "filter": {}}).json()["id"]
    run_step(operation_id)

    aborted = as_machine.post(f"operations/{operation_id}/abort")

    assert (aborted.status_code, aborted.json()["state"], aborted.json()["changed"]) == (200, "aborted", 2)
    assert run_step(operation_id) is None
    assert Job.objects.filter(status="queued").count() == 2
    assert as_machine.post(f"operations/{operation_id}/abort").status_code == 409


def test_a_row_the_database_refuses_does_not_stop_the_others(as_machine, queue, monkeypatch):
    from django.db import DataError

    jobs = make_jobs(queue, 3)
    real = cancel_jobs

    def picky(ids, **more):
        if jobs[1].id in ids:
            raise DataError("bad row")
        return real(ids, **more)

    monkeypatch.setattr(operation_steps, "cancel_jobs", picky)
    operation_id = as_machine.post("operations", {"action": "cancel", "filter": {}}).json()["id"]

    assert _run(operation_id) == {"matched": 3, "changed": 2, "skipped": 0, "failed": 1, "steps": 0}
    assert as_machine.get(f"operations/{operation_id}").json()["last_error"] == "bad row"


def test_the_scheduler_carries_them_out(as_machine, queue, monkeypatch):
    make_jobs(queue, 5)
    monkeypatch.setattr(operation_steps, "STEP", 2)
    for _ in range(2):
        as_machine.post("operations", {"action": "cancel", "filter": {}})
    work = duty.duty(2.0)

    while work.run() == 0:  # a slow machine takes more than one round
        pass

    assert set(Operation.objects.values_list("state", flat=True)) == {"completed"}
    assert Job.objects.filter(status="cancelled").count() == 5


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "explode", "filter": {}}, "action"),
        ({"action": "cancel"}, "filter"),
        ({"action": "cancel", "filter": {}, "ids": ["0193a5d0-0000-7000-8000-000000000000"]}, "filter"),
        ({"action": "cancel", "filter": {"status": "completed"}}, "filter.status"),
        ({"action": "retry", "filter": {"status": "queued"}}, "filter.status"),
        ({"action": "discard", "filter": {"status": "dead_letter"}}, "filter.status"),
        ({"action": "cancel", "filter": {"queue": "x"}}, "filter.queue"),
        ({"action": "cancel", "ids": []}, "ids"),
        ({"action": "cancel", "ids": ["x"]}, "ids[0]"),
        ({"action": "cancel", "filter": {}, "reason": "x" * 501}, "reason"),
        ({"action": "cancel", "filter": {"job_type": "a\u0000"}}, "filter.job_type"),
    ],
)
def test_bad_operations_name_the_field(as_machine, body, field):
    answer = as_machine.post("operations", body)

    assert (answer.status_code, field_of(answer)) == (400, field)


def test_people_name_the_project_and_queues_of_others_look_unknown(as_member, queue):
    foreign = make_queue()
    nameless = as_member.post("operations", {"action": "cancel", "filter": {}})
    answers = [
        as_member.post(
            "operations", {"action": "cancel", "project_id": str(queue.project_id), "filter": {"queue_id": str(id_)}}
        )
        for id_ in (foreign.pk, uuid7())
    ]

    assert (nameless.status_code, field_of(nameless)) == (400, "project_id")
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content


def test_the_list_shows_the_newest_first_without_ids(as_machine, queue):
    for _ in range(3):
        as_machine.post("operations", {"action": "cancel", "ids": [str(uuid7())]})

    page = as_machine.get("operations", limit=2).json()

    assert len(page["items"]) == 2
    assert "ids" not in page["items"][0]
    assert page["items"][0]["id"] > page["items"][1]["id"]
