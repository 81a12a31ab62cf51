"""A handler's declared payload: bad ones are refused wherever jobs come from, good ones arrive as the types say."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from jobs.handlers import JobContext, handler
from jobs.handlers.registry import HandlerProblem
from jobs.lifecycle.graph import Node, submit_graph
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import Job, JobBatch, ScheduledJob
from jobs.services import schedules
from jobs.testing import drain
from scheduler_project.lib.errors import ValidationFailed
from tests.factories import path_of, reload
from tests.payloads.samples import Call, sample_handlers

BAD = {"url": "nowhere", "retries": -1}
GOOD = {"url": "https://example.com/a"}


@pytest.fixture(autouse=True)
def seen():
    with sample_handlers() as seen:
        yield seen


def _job(queue, job_type="sample.call", payload=None, **fields):
    return {"queue_id": str(queue.pk), "job_type": job_type, "payload": BAD if payload is None else payload, **fields}


def fields_of(answer):
    assert answer.status_code == 400, answer.content
    assert answer.json()["error"] == "validation_error"
    return {detail["field"] for detail in answer.json()["details"]}


def test_a_single_job_is_refused_with_the_paths(as_member, queue):
    assert fields_of(as_member.post("jobs", _job(queue))) == {"payload.url", "payload.retries"}
    assert fields_of(as_member.post("jobs", _job(queue, payload={}))) == {"payload.url"}
    assert fields_of(as_member.post("jobs", _job(queue, payload={**GOOD, "x": 1}))) == {"payload.x"}
    items = {"items": [GOOD, GOOD, GOOD, {"url": "nowhere"}]}
    answer = as_member.post("jobs", _job(queue, "sample.calls", items))
    assert answer.json()["message"] == "payload.items[3].url: is not of the form uri"
    assert not Job.objects.exists()


def test_a_good_one_arrives_as_the_type_says(as_member, queue, seen):
    assert as_member.post("jobs", _job(queue, payload=GOOD)).status_code == 201
    submit_job(queue, NewJob(job_type="sample.mail", payload={"to": "ada@example.com", "copies": 2}))

    ran = drain(queue)

    assert [one.result for one in ran] == [3, {"copies": 2}]
    assert seen == {"call": Call("https://example.com/a", 3), "mail": ("ada@example.com", 2)}


def test_unknown_types_take_any_payload(as_member, queue):
    assert as_member.post("jobs", _job(queue, "elsewhere.known")).status_code == 201


def test_in_bulk_each_is_judged(as_member, queue):
    good, bad = _job(queue, payload=GOOD), _job(queue)

    answer = as_member.post("jobs/bulk", {"jobs": [good, bad, good], "atomic": False})
    refused = as_member.post("jobs/bulk", {"jobs": [good, bad]})

    results = answer.json()["results"]
    assert [result["status"] for result in results] == [201, 400, 201]
    assert {detail["field"] for detail in results[1]["details"]} == {"payload.url", "payload.retries"}
    assert fields_of(refused) == {"jobs[1].payload.url", "jobs[1].payload.retries"}
    assert Job.objects.count() == 2


def test_graphs_are_judged(as_member, queue):
    jobs = [_job(queue, payload=GOOD, ref="a"), _job(queue, ref="b", depends_on=[{"ref": "a"}])]

    assert "jobs[1].payload.url" in fields_of(as_member.post("jobs/bulk", {"jobs": jobs}))
    with pytest.raises(ValidationFailed, match=r"payload\.url"):
        submit_graph([Node("a", queue, NewJob(job_type="sample.call", payload=BAD))])


def test_batches_are_judged_and_so_are_their_callbacks(as_machine, queue):
    callback = {"queue_id": str(queue.pk), "job_type": "sample.batch_end"}

    jobs = as_machine.post("batches", {"name": "b", "jobs": [_job(queue)]})
    bad = as_machine.post("batches", {"name": "b", "on_end": {**callback, "payload": {"x": 1}}})
    good = as_machine.post("batches", {"name": "b", "on_end": {**callback, "payload": {}}})

    assert "jobs[0].payload.url" in fields_of(jobs)
    assert fields_of(bad) == {"on_end.payload.x"}
    assert good.status_code == 201
    assert JobBatch.objects.count() == 1


def test_templates_of_schedules_are_judged(as_owner, queue):
    fields = {"queue_id": str(queue.pk), "name": "s", "cron_expression": "0 0 * * *", "job_type": "sample.call"}

    assert fields_of(as_owner.post("scheduled-jobs", {**fields, "payload_template": BAD})) == {
        "payload_template.url", "payload_template.retries",
    }  # fmt: skip
    made = as_owner.post("scheduled-jobs", {**fields, "payload_template": GOOD}).json()

    def patch(changes):
        return as_owner.send("PATCH", f"scheduled-jobs/{made['id']}", json.dumps(changes))

    assert fields_of(patch({"payload_template": {}})) == {"payload_template.url"}
    assert fields_of(patch({"job_type": "sample.calls"})) == {"payload_template.items"}
    assert patch({"cron_expression": "0 1 * * *"}).status_code == 200


def test_the_shell_is_judged(queue):
    with pytest.raises(CommandError, match=r"payload\.url: is not of the form uri"):
        call_command("submit", "sample.call", queue=path_of(queue), payload=json.dumps({"url": "x"}))


def test_the_worker_judges_again_what_was_accepted_before_a_deploy(queue, seen):
    job = submit_job(queue, NewJob(job_type="sample.call", payload=BAD, is_stored=True))

    [ran] = drain(queue)

    assert "call" not in seen
    assert ran.status == "dead_letter"
    assert ran.error == "payload.url: is not of the form uri; payload.retries: must be at least 0"
    assert reload(job).attempt_count == 1


def test_a_schedule_fires_though_its_handler_wants_more_now_and_the_worker_says_so(queue, seen):
    schedule = schedules.create_schedule(
        queue, name="s", cron_expression="0 0 * * *", job_type="sample.call", payload_template=GOOD
    )
    ScheduledJob.objects.filter(pk=schedule.pk).update(payload_template={"address": "x"})

    schedules.trigger(schedule.pk)

    [ran] = drain(queue)
    assert (ran.status, ran.error) == (
        "dead_letter", "payload.address: is not known; known: retries, url; payload.url: is required",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"payload": {"type": "strin"}}, r"'bad' \(.*\) declares its payload badly: schema\.type"),
        ({"payload": {"$ref": "https://example.com"}}, "only references inside"),
        ({"payload": set}, "no form in JSON"),
        ({"secret_fields": "password"}, "list of names"),
        ({"secret_fields": [""]}, "names with dots"),
        ({"payload": {"x-secret": True}}, "name the fields"),
    ],
)
def test_a_bad_declaration_is_refused_when_it_is_made(options, text):
    def bad(ctx: JobContext) -> None: ...

    with pytest.raises(HandlerProblem, match=text):
        handler("bad", **options)(bad)


def test_a_submission_costs_no_statement_more(as_machine, queue, django_assert_num_queries):
    def statements(payload, job_type):
        with django_assert_num_queries(2):
            assert as_machine.post("jobs", _job(queue, job_type, payload)).status_code == 201

    statements({"a": 1}, "noop")
    statements(GOOD, "sample.call")
    statements({"password": "x"}, "sample.secret")


def test_job_types_are_shown(as_viewer):
    shown = {item["name"]: item for item in as_viewer.get("job-types", limit=200).json()["items"]}

    assert shown["sample.call"]["schema"]["properties"]["retries"] == {"type": "integer", "minimum": 0, "default": 3}
    assert shown["sample.call"]["description"] == "Call an address."
    assert shown["sample.mail"]["isolation"] == "async"
    assert shown["sample.login"]["secret_fields"] == ["headers.Authorization", "password"]
    assert shown["noop"]["schema"] is None
    assert shown["sleep_*"]["isolation"] == "thread"


def test_job_types_come_in_pages(as_viewer):
    first = as_viewer.get("job-types", limit=2).json()
    second = as_viewer.get("job-types", limit=2, cursor=first["next_cursor"]).json()
    by_offset = as_viewer.get("job-types", limit=2, offset=2).json()

    names = [item["name"] for item in first["items"] + second["items"]]
    assert names == sorted(names)
    assert second["items"] == by_offset["items"]
