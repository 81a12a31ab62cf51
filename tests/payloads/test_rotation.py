"""A new APP_SECRET_KEY: everything stored is sealed anew, in steps that may be interrupted."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from dlq.models import DeadLetter
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import Job, JobBatch, ScheduledJob
from jobs.services import batches, schedules
from jobs.services.rotation import Tally, rotate
from jobs.testing import drain
from scheduler_project.lib import sealed_json
from tests.payloads.samples import PASSWORD, sample_handlers

PAYLOAD = {"password": PASSWORD, "user": "ada"}


@pytest.fixture(autouse=True)
def seen():
    with sample_handlers() as seen:
        yield seen


@pytest.fixture
def stored(queue):
    """Something sealed in each place, and something that is not."""
    for _ in range(5):
        submit_job(queue, NewJob(job_type="sample.secret", payload=PAYLOAD))
    submit_job(queue, NewJob(job_type="sample.secret", payload={**PAYLOAD, "fail": True}, max_attempts=1, priority=9))
    submit_job(queue, NewJob(job_type="noop", payload={"a": 1}))
    drain(queue)
    schedules.create_schedule(
        queue, name="s", cron_expression="0 0 * * *", job_type="sample.secret", payload_template=PAYLOAD
    )
    callback = {"queue_id": str(queue.pk), "job_type": "sample.batch_end", "payload": {"token": PASSWORD}}
    batches.create_batch(queue.project_id, "b", callbacks={"on_end": callback, "on_failure": callback})
    return queue


@pytest.fixture
def new_key(settings):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 50, [settings.SECRET_KEY]


def all_open() -> bool:
    values = [
        *Job.objects.values_list("payload", flat=True), *DeadLetter.objects.values_list("payload_snapshot", flat=True),
        *ScheduledJob.objects.values_list("payload_template", flat=True),
        *JobBatch.objects.values_list("on_end", flat=True), *JobBatch.objects.values_list("on_failure", flat=True),
    ]  # fmt: skip
    found = [secret for value in values for secret in sealed_json.opened(value).secrets]
    return found == [PASSWORD] * 10


def test_everything_is_sealed_anew_and_the_old_key_can_go(stored, settings, new_key, capsys):
    call_command("secrets", "rotate", "--step", "2")

    settings.SECRET_KEY_FALLBACKS = []
    assert all_open()
    assert "sealed anew: 10, were already: 0, can not be opened: 0" in capsys.readouterr().out


def test_numbers_keep_their_digits(queue, new_key):
    digits = "12345678901234567.8901234567890"
    job = submit_job(queue, NewJob(job_type="sample.secret", payload={"password": PASSWORD, "n": 1}))
    with connection.cursor() as cursor:
        cursor.execute("update jobs set payload = jsonb_set(payload, '{n}', %s::jsonb)", [digits])

    call_command("secrets", "rotate")

    with connection.cursor() as cursor:
        cursor.execute("select payload ->> 'n' from jobs where id = %s", [job.id])
        assert cursor.fetchone() == (digits,)


def test_stopped_between_two_steps_it_goes_on_later(stored, new_key, settings):
    first = rotate(Tally(), step=2)
    next(first)
    assert next(first).renewed == 4

    rest = Tally()
    for _ in rotate(rest, step=2):
        pass

    assert (rest.renewed, rest.current) == (6, 4)
    settings.SECRET_KEY_FALLBACKS = []
    assert all_open()


def test_what_can_not_be_opened_is_told_and_left(stored, settings, new_key):
    settings.SECRET_KEY_FALLBACKS = []
    before = list(Job.objects.order_by("id").values_list("payload", flat=True))

    with pytest.raises(CommandError, match=r"can not be opened: 10 \(such as job_batches"):
        call_command("secrets", "rotate")

    assert list(Job.objects.order_by("id").values_list("payload", flat=True)) == before


def test_a_signal_stops_it_after_the_step(stored, new_key, monkeypatch):
    from jobs.management.commands import secrets

    command = secrets.Command()

    def signalled(tally, *, step):
        for at_step in rotate(tally, step=step):
            command._stop()
            yield at_step

    monkeypatch.setattr(secrets, "rotate", signalled)
    with pytest.raises(CommandError, match=r"stopped; sealed anew: 2, .*Run it again"):
        call_command(command, "rotate", "--step", "2")
