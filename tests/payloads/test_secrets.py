"""Secret fields: never in the clear in any table or answer, in the clear for the handler alone."""

from __future__ import annotations

import io
import json
import logging
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client

from dlq.models import DeadLetter
from jobs.lifecycle.requeue import requeue_job
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import Job, JobBatch, JobExecution, JobLog, ScheduledJob
from jobs.services import batches, schedules
from jobs.services.retention import run_retention
from jobs.testing import drain
from scheduler_project.lib import logs, sealed_json
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.sealed_json import MASK, SIGN
from tests.factories import reload
from tests.payloads.samples import PASSWORD, Account, sample_handlers
from tests.personas import make_user
from tests.worker_parts import context_of, lease_of

PAYLOAD = {"user": "ada", "password": PASSWORD, "headers": {"authorization": "Bearer tok-en-12345"}}
TABLES = (
    "jobs", "job_executions", "job_logs", "dead_letter_queue", "jobs_archive", "scheduled_jobs", "job_batches",
    "audit_log", "schedule_fires", "operations",
)  # fmt: skip


@pytest.fixture(autouse=True)
def seen():
    with sample_handlers() as seen:
        yield seen


def database_holds(text: str) -> list[str]:
    """The tables in which a text stands anywhere."""
    with connection.cursor() as cursor:
        found = []
        for table in TABLES:
            cursor.execute(f"select count(*) from {table} as r where r::text like %s", [f"%{text}%"])
            found += [table] if cursor.fetchone()[0] else []
    return found


def submit(queue, **fields):
    return submit_job(queue, NewJob(job_type="sample.secret", payload={**PAYLOAD, **fields}))


def test_the_search_of_the_tables_would_find_it(queue):
    submit_job(queue, NewJob(job_type="noop", payload=PAYLOAD))

    assert database_holds(PASSWORD) == ["jobs"]


def test_the_handler_sees_it_and_no_table_does(queue, seen):
    job = submit(queue)
    assert SIGN in json.dumps(reload(job).payload)

    [ran] = drain(queue)

    assert seen["secret"] == PAYLOAD
    assert ran.status == "completed"
    assert ran.result == {"used": MASK, "n": 1}
    assert JobLog.objects.get().message == f"logging in with {MASK}"
    assert reload(job).progress_note == f"as {MASK}"
    assert database_holds(PASSWORD) == database_holds("tok-en-12345") == []


def test_what_fails_says_so_without_it(queue, as_viewer, as_owner):
    job = submit_job(queue, NewJob(job_type="sample.secret", payload={**PAYLOAD, "fail": True, "n": 7}, max_attempts=1))

    drain(queue)

    assert reload(job).error_message == f"RuntimeError: refused: '{MASK}'"
    execution = JobExecution.objects.get()
    assert (execution.error_stack or "").rstrip().endswith(f"RuntimeError: refused: '{MASK}'")
    letter = DeadLetter.objects.get()
    assert sealed_json.opened(letter.payload_snapshot).value["password"] == PASSWORD
    assert database_holds(PASSWORD) == []
    for api in (as_viewer, as_owner):
        for path in (f"jobs/{job.id}", f"dead-letter/{letter.pk}", f"jobs/{job.id}/executions", f"jobs/{job.id}/logs"):
            answer = api.get(path)
            assert answer.status_code == 200
            assert PASSWORD not in answer.content.decode()
            assert SIGN not in answer.content.decode().replace(" ", "")
    shown = as_owner.get(f"jobs/{job.id}").json()["payload"]
    assert shown == {"user": "ada", "password": MASK, "headers": {"authorization": MASK}, "fail": True, "n": 7}
    assert as_viewer.get(f"dead-letter/{letter.pk}").json()["payload_snapshot"] == shown


def test_what_anybody_logs_while_the_handler_runs_is_without_it():
    stream = io.StringIO()
    lease = lease_of("sample.secret", sealed_json.seal(PAYLOAD, [("password",)]))
    formatter = logging.getLogger().handlers[0].formatter
    record = logging.LogRecord("some.library", logging.INFO, "", 0, "using %s", (PASSWORD,), None)

    token = logs.current_job.set(context_of(lease))
    assert formatter is not None
    stream.write(formatter.format(record))
    logs.current_job.reset(token)

    assert "some.library" in stream.getvalue()
    assert PASSWORD not in stream.getvalue()


def test_a_job_that_is_queued_again_has_it_still(queue, seen):
    job = submit(queue)
    drain(queue)
    seen.clear()

    requeue_job(job.id, by=None)
    drain(queue)

    assert seen["secret"] == PAYLOAD


def test_a_letter_whose_job_is_gone_becomes_a_job_with_it(queue, seen, as_owner):
    job = submit_job(queue, NewJob(job_type="sample.secret", payload={**PAYLOAD, "fail": True}, max_attempts=1))
    drain(queue)
    seen.clear()
    letter = DeadLetter.objects.get()
    Job.objects.filter(pk=job.id).delete()

    assert as_owner.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"}).status_code == 200
    drain(queue)

    assert seen["secret"]["password"] == PASSWORD
    assert database_holds(PASSWORD) == []


def test_a_typed_handler_gets_it_typed(queue, seen):
    submit_job(queue, NewJob(job_type="sample.login", payload={"user": "ada", "password": PASSWORD}))

    drain(queue)

    assert seen["login"] == Account("ada", PASSWORD)
    assert database_holds(PASSWORD) == []


def test_a_refused_payload_is_told_without_it(as_member, queue):
    answer = as_member.post(
        "jobs", {"queue_id": str(queue.pk), "job_type": "sample.login", "payload": {"user": 1, "password": [PASSWORD]}}
    )

    assert answer.status_code == 400
    assert {detail["field"] for detail in answer.json()["details"]} == {"payload.user", "payload.password"}
    assert PASSWORD not in answer.content.decode()


@pytest.mark.parametrize("job_type", ["noop", "sample.secret", "sample.login"])
def test_nobody_can_hand_in_a_sealed_value(as_member, queue, job_type):
    submit(queue)
    stolen = Job.objects.get().payload["password"]

    for payload in ({"password": stolen}, {"user": {"$secret": "x"}}, [{"a": stolen}]):
        answer = as_member.post("jobs", {"queue_id": str(queue.pk), "job_type": job_type, "payload": payload})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["field"] == "payload"
        assert "reserved" in answer.json()["message"]
    assert as_member.post(
        "jobs", {"queue_id": str(queue.pk), "job_type": "noop", "payload": {"a": '"$secret":', "b": "$secret"}}
    ).status_code == 201  # fmt: skip


def test_nor_in_callbacks_and_templates(as_machine, queue):
    forged = {"password": {"$secret": "x", "mac": "y"}}
    job = {"queue_id": str(queue.pk), "job_type": "noop"}
    schedule = {**job, "name": "s", "cron_expression": "0 0 * * *"}

    answers = [
        as_machine.post("batches", {"name": "b", "on_end": {**job, "payload": forged}}),
        as_machine.post("scheduled-jobs", {**schedule, "payload_template": forged}),
        as_machine.post("jobs/bulk", {"jobs": [{**job, "payload": forged}]}),
    ]

    assert [answer.json()["details"][0]["field"] for answer in answers] == [
        "on_end.payload", "payload_template", "jobs[0].payload",
    ]  # fmt: skip


@pytest.mark.parametrize("is_bulk", [False, True])
def test_an_idempotency_key_knows_the_same_secret_and_another_one(as_machine, queue, settings, is_bulk):
    def send(**changes):
        item = {"queue_id": str(queue.pk), "job_type": "sample.secret", "payload": {**PAYLOAD, **changes},
                "idempotency_key": "k"}  # fmt: skip
        if not is_bulk:
            return as_machine.post("jobs", item).status_code
        return as_machine.post("jobs/bulk", {"jobs": [item], "atomic": False}).json()["results"][0]["status"]

    assert send() == 201
    assert send() == 200
    assert send(password="another one") == 409
    assert send(user="bob") == 409
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 50, [settings.SECRET_KEY]
    assert send() == 200
    assert send(password="another one") == 409


def test_templates_of_schedules_are_sealed(queue, seen, as_owner):
    schedule = schedules.create_schedule(
        queue, name="s", cron_expression="0 0 * * *", job_type="sample.secret", payload_template=PAYLOAD
    )
    shown = as_owner.get(f"scheduled-jobs/{schedule.pk}").json()["payload_template"]
    answer = as_owner.send("PATCH", f"scheduled-jobs/{schedule.pk}", json.dumps({"cron_expression": "0 1 * * *"}))
    schedules.trigger(schedule.pk)
    drain(queue)

    assert shown["password"] == MASK
    assert answer.status_code == 200
    assert seen["secret"] == PAYLOAD
    changed = {"payload_template": {**PAYLOAD, "password": "other-secret-1"}}
    as_owner.send("PATCH", f"scheduled-jobs/{schedule.pk}", json.dumps(changed))
    schedules.trigger(schedule.pk)
    drain(queue)
    assert seen["secret"]["password"] == "other-secret-1"
    assert database_holds(PASSWORD) == database_holds("other-secret-1") == []


def test_a_template_that_becomes_secret_with_another_type_is_sealed(queue):
    schedule = schedules.create_schedule(
        queue, name="s", cron_expression="0 0 * * *", job_type="noop", payload_template=PAYLOAD
    )
    assert database_holds(PASSWORD) == ["scheduled_jobs"]

    schedules.update_schedule(schedule.pk, job_type="sample.secret")

    assert database_holds(PASSWORD) == []
    assert sealed_json.opened(ScheduledJob.objects.get().payload_template).value == PAYLOAD


def test_callbacks_of_batches_are_sealed(queue, seen, as_owner):
    callback = {"queue_id": str(queue.pk), "job_type": "sample.batch_end", "payload": {"token": PASSWORD}}
    batch = batches.create_batch(queue.project_id, "b", callbacks={"on_end": callback})
    shown = as_owner.get(f"batches/{batch.pk}").json()["on_end"]["payload"]

    batches.close_batch(batch.pk)
    batches.fold_batches()
    drain(queue)

    assert shown == {"token": MASK}
    assert seen["batch_end"]["token"] == PASSWORD
    assert seen["batch_end"]["batch"]["id"] == str(batch.pk)
    assert database_holds(PASSWORD) == []
    assert SIGN.strip('":') in str(JobBatch.objects.get().on_end)


def test_the_archive_keeps_it_sealed(queue, monkeypatch):
    past = timedelta(days=100) // timedelta(milliseconds=1) << 80
    monkeypatch.setattr("jobs.lifecycle.submit.uuid7s", lambda n: [UUID(int=uuid7().int - past) for _ in range(n)])
    submit(queue)
    drain(queue)
    long_ago = Now() - timedelta(days=50)
    Job.objects.update(created_at=long_ago, completed_at=long_ago)

    assert run_retention() == 1
    assert database_holds("$secret") == ["jobs_archive"]
    assert database_holds(PASSWORD) == []


def test_the_operators_pages_show_a_mask(queue):
    job = submit(queue)
    admin = make_user(is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(admin)

    page = client.get(f"/admin/jobs/job/{job.id}/change/").content.decode()

    assert MASK in page or json.dumps(MASK)[1:-1] in page
    assert "$secret" not in page


def test_without_the_key_the_job_fails_for_good_and_says_why(queue, settings, seen):
    job = submit(queue)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 50, []

    drain(queue)

    assert seen == {}
    assert reload(job).status == "dead_letter"
    assert "can not be opened with APP_SECRET_KEY" in str(reload(job).error_message)
