"""The trace of a request is the trace of the jobs that it submits, and of those which they submit."""

from __future__ import annotations

import pytest

from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import Job
from scheduler_project.lib import logs, tracing
from tests.worker_parts import context_of

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def submit(api, queue, *, traceparent: str = "", **fields):
    body = {"queue_id": str(queue.pk), "job_type": "test.echo", **fields}
    answer = api.post("jobs", body, **({"traceparent": traceparent} if traceparent else {}))
    assert answer.status_code == 201, answer.content
    return answer.json()["trace_id"]


def test_the_trace_of_the_request_is_kept_and_ends_with_it(as_member, queue):
    assert submit(as_member, queue, traceparent=TRACE) == TRACE
    assert Job.objects.get().trace_id == TRACE
    assert submit(as_member, queue) == ""
    assert tracing.current() == ""


def test_a_trace_of_ones_own_wins(as_member, queue):
    assert submit(as_member, queue, traceparent=TRACE, trace_id="order 17") == "order 17"


@pytest.mark.parametrize(
    "header",
    ["x", TRACE[:-1], TRACE.upper(), TRACE + "-more", f"00-{'0' * 32}-{'1' * 16}-01", f"00-{'1' * 32}-{'0' * 16}-01"],
)
def test_what_is_no_traceparent_is_left_aside(as_member, queue, header: str):
    assert submit(as_member, queue, traceparent=header) == ""


@pytest.mark.parametrize("trace_id", [TRACE, "order 17", ""])
def test_what_a_handler_submits_belongs_to_the_trace_of_its_job(queue, trace_id: str):
    ctx = context_of()
    ctx.trace_id = trace_id
    token = logs.current_job.set(ctx)
    try:
        job = submit_job(queue, NewJob(job_type="noop"))
    finally:
        logs.current_job.reset(token)

    assert Job.objects.get(pk=job.id).trace_id == trace_id
