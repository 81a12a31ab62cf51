"""A worker that runs for long holds no more memory, files and threads than one that has just warmed up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.egress import Policy, Rules
from tests.bad_targets import DONE, OUTSIDE, Target, answer, says
from tests.factories import make_job, make_jobs, reload
from tests.loopback import Certificates, playground
from tests.processes import worker
from tests.sizes import size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

JOBS = size("MEMORY_JOBS", suite=3_000, full=20_000)
WARM, SEATS = 1_500, 8
MIB = 1024 * 1024


def submit(queue: Queue, count: int, url: str) -> None:
    """Tiny jobs, and a twentieth each that fail and that call a server."""
    make_jobs(queue, count)
    make_jobs(queue, count // 20, "failing", max_attempts=1)
    make_jobs(queue, count // 20, "http.webhook", payload={"url": url})


@pytest.mark.timeout(900)
def test_thousands_of_jobs_leave_nothing_behind(committed_queue: Queue, tmp_path: Path, settings: Any) -> None:
    settings.EGRESS_POLICY = Policy(allow=Rules.of([OUTSIDE]))
    target = Target("good", DONE, play=says(answer(b"x" * 100)))
    env = {"APP_EGRESS_ALLOW": OUTSIDE, "APP_ENV": "test"}
    with (
        playground([target], Certificates(tmp_path)) as servers,
        worker("--concurrency", str(SEATS), env=env) as process,
    ):
        sizes = []
        for count in (WARM, JOBS - WARM):
            submit(committed_queue, count, servers.url(target))
            wait_until(
                lambda: not Job.objects.filter(status__in=["queued", "claimed", "running"]).exists(),
                timeout_s=600,
                every_s=0.2,
            )
            wait_until(lambda: servers.open_count == 0)
            sizes.append((process.memory(), process.open_files(), process.threads()))
        files, threads = sizes[0][1:]
        # Each seat keeps the connection over which it once asked for a project's facts, and now and then the worker
        # looks around for a moment over one of its own.
        wait_until(lambda: process.open_files() <= files + SEATS and process.threads() == threads)
        asked = make_job(committed_queue, "query.log")
        wait_until(lambda: reload(asked).status == "completed")

    before, after = (memory for memory, *_ in sizes)
    grown = f"{before / MIB:.1f} MiB after {WARM}, {after / MIB:.1f} at the end"
    print(f"\n{JOBS} jobs: {grown}; {files} files, {threads} threads")
    assert Job.objects.filter(job_type="noop", status="completed").count() == JOBS
    assert Job.objects.filter(job_type="http.webhook", status="completed").count() == JOBS // 20
    assert Job.objects.filter(job_type="failing", status="dead_letter").count() == JOBS // 20
    assert after - before < 30 * MIB
    assert reload(asked).result == {"debug": False, "kept": 0}
