"""Workers over HTTP and secrets in payloads: they get them in the clear, and what they say back is scrubbed."""

from __future__ import annotations

import pytest

from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import JobExecution, JobLog
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.sealed_json import MASK
from tests.factories import reload
from tests.payloads.samples import PASSWORD, sample_handlers
from tests.personas import Api, make_key


@pytest.fixture(autouse=True)
def seen():
    with sample_handlers() as seen:
        yield seen


def test_the_worker_gets_the_secret_and_nothing_it_says_keeps_it(queue):
    api, worker_id = Api(key=make_key(queue.project)), str(uuid7())
    job = submit_job(queue, NewJob(job_type="sample.secret", payload={"password": PASSWORD}, max_attempts=2))
    plain = submit_job(queue, NewJob(job_type="noop", payload={"a": 1}))

    handed = api.post("worker/claim", {"worker_id": worker_id, "max_jobs": 2}).json()["jobs"]
    leases = {one["id"]: one["lease_token"] for one in handed}
    line = {"message": f"using {PASSWORD}"}
    said = {"progress_percent": 5, "progress_note": f"as {PASSWORD}", "logs": [line]}
    beats = [{"id": id_, "lease_token": token, **said} for id_, token in leases.items()]
    assert api.post("worker/heartbeat", {"worker_id": worker_id, "leases": beats}).status_code == 200
    failed = {"message": f"no {PASSWORD}", "stack": f"at {PASSWORD}"}
    api.post("worker/finish", {"worker_id": worker_id, "results": [
        {"id": str(job.id), "lease_token": leases[str(job.id)], "outcome": "failed", "error": failed},
        {"id": str(plain.id), "lease_token": leases[str(plain.id)], "outcome": "completed", "result": {"a": PASSWORD}},
    ]})  # fmt: skip

    assert {one["id"]: one["payload"] for one in handed} == {
        str(job.id): {"password": PASSWORD}, str(plain.id): {"a": 1},
    }  # fmt: skip
    assert reload(job).progress_note == f"as {MASK}"
    assert {row.job_id: row.message for row in JobLog.objects.all()} == {
        job.id: f"using {MASK}", plain.id: f"using {PASSWORD}",
    }  # fmt: skip
    execution = JobExecution.objects.get(job_id=job.id)
    assert (execution.error_message, execution.error_stack) == (f"no {MASK}", f"at {MASK}")
    assert reload(plain).result == {"a": PASSWORD}


def test_a_result_is_scrubbed(queue):
    api, worker_id = Api(key=make_key(queue.project)), str(uuid7())
    job = submit_job(queue, NewJob(job_type="sample.secret", payload={"password": PASSWORD}))
    [handed] = api.post("worker/claim", {"worker_id": worker_id}).json()["jobs"]

    result = {"id": handed["id"], "lease_token": handed["lease_token"], "outcome": "completed",
              "result": {"used": [PASSWORD, 1]}}  # fmt: skip
    api.post("worker/finish", {"worker_id": worker_id, "results": [result]})

    assert reload(job).result == {"used": [MASK, 1]}
