"""The worker of docs/examples, as real processes against a real server: killed, frozen, resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.models import Job, JobExecution, Worker
from orgs.models import ApiKey
from queues.models import Queue
from queues.services import create_retry_policy
from tests.factories import make_jobs
from tests.personas import Api, make_key
from tests.processes import ROOT, scheduler
from tests.servers import web_server
from tests.sizes import size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]
SCRIPT = ROOT / "docs" / "examples" / "worker.sh"
JOBS = size("SHELL_JOBS", suite=60, full=200)
PAYLOAD = '{"words":["a b","c\\"d"],"payload":{}}'


class ShellWorker:
    """One worker with all its child processes, as a host of its own: signals reach all of them."""

    def __init__(self, url: str, key: str, queue: Queue, command: str, **env: str) -> None:
        self.log = tempfile.NamedTemporaryFile()  # noqa: SIM115 - closed with the worker
        self.popen = subprocess.Popen(
            ["sh", str(SCRIPT), queue.name, "sh", "-c", command],
            env={"PATH": os.environ["PATH"], "PUNCTUAL_URL": url, "PUNCTUAL_KEY": key, "WAIT_MS": "500", **env},
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def send(self, number: signal.Signals) -> None:
        os.killpg(self.popen.pid, number)

    def output(self) -> str:
        return Path(self.log.name).read_text(errors="replace")

    def held(self) -> Job | None:
        """The job it holds; found by the id of the process, which it tells with its claims."""
        row = Worker.objects.filter(pid=self.popen.pid).first()
        return None if row is None else Job.objects.in_flight().filter(locked_by=row.pk).first()

    def close(self) -> None:
        if self.popen.poll() is None:
            self.send(signal.SIGKILL)
        self.popen.wait(10)
        self.log.close()


@pytest.fixture
def server(committed_queue: Queue, unused_port: int) -> Iterator[str]:
    """The address of a web server on the test database."""
    with web_server(unused_port) as url:
        yield url


def _freeze_with_a_job(worker: ShellWorker) -> Job:
    """Stop it at a moment in which it holds a job."""

    def try_it() -> Any:
        if worker.held() is None:
            return None
        worker.send(signal.SIGSTOP)
        job = worker.held()
        if job is None:
            worker.send(signal.SIGCONT)
        return job

    job: Job = wait_until(try_it, 30, what="a frozen worker with a job")
    return job


def test_every_job_is_done_once_though_one_worker_is_killed_and_one_frozen(server, committed_queue, tmp_path):
    policy = create_retry_policy(
        committed_queue.project, name="quick", strategy="fixed", base_delay_ms=100, jitter=False
    )
    Queue.objects.filter(pk=committed_queue.pk).update(visibility_timeout_secs=3, default_retry_policy=policy)
    made = make_jobs(committed_queue, JOBS, payload=json.loads(PAYLOAD))
    key = make_key(committed_queue.project, ApiKey.Scope.WORK)
    command = f'cat >>"{tmp_path}/$JOB_ID"; sleep 0.05'
    # No heartbeat is due while such short jobs run, so the frozen one does not learn of its loss before it reports.
    workers = [ShellWorker(server, key, committed_queue, command, BEAT_S="60") for _ in range(2)]
    killed, frozen = workers

    def done() -> int:
        return Job.objects.filter(status="completed").count()

    try:
        with scheduler():
            wait_until(lambda: done() >= 20, 60, what="the first jobs")
            lost = [wait_until(killed.held, 30)]
            killed.send(signal.SIGKILL)
            stale = _freeze_with_a_job(frozen)
            token: Any = stale.lease_token
            wait_until(lambda: JobExecution.objects.filter(pk=token, status="lost").exists(), 30, what="the reaper")
            late = Api(key=key).post(
                "worker/finish",
                {
                    "worker_id": str(stale.locked_by),
                    "results": [{"id": str(stale.pk), "lease_token": str(token), "outcome": "completed"}],
                },
            )
            frozen.send(signal.SIGCONT)
            wait_until(lambda: done() == JOBS, 120, every_s=0.2, what="all jobs")
            frozen.send(signal.SIGTERM)
            assert frozen.popen.wait(30) == 0
        output = frozen.output()
    finally:
        for worker in workers:
            worker.close()

    assert late.status_code == 409
    assert f"{stale.pk}: exit code 0, answered 409" in output
    ends = Counter(JobExecution.objects.values_list("job_id", "status"))
    assert {job_id: ends[job_id, "completed"] for job_id in (job.id for job in made)} == {job.id: 1 for job in made}
    assert sum(count for (_, status), count in ends.items() if status == "lost") <= 1 + len(lost)
    seen = [(tmp_path / str(job.id)).read_text().replace(PAYLOAD, "x") for job in made]
    assert set(seen) <= {"x", "xx"}  # at least once, as promised; the two interrupted ones perhaps twice
    assert seen.count("xx") <= 2


def test_exit_codes_end_jobs_and_a_cancel_stops_the_command(server, committed_queue, tmp_path):
    Queue.objects.filter(pk=committed_queue.pk).update(visibility_timeout_secs=3)
    key = make_key(committed_queue.project)
    made = {code: make_jobs(committed_queue, 1, str(code))[0].id for code in ("0", "75", "65", "1", "hang")}
    command = '[ "$JOB_TYPE" = hang ] && exec sleep 60; exit "$JOB_TYPE"'
    worker = ShellWorker(server, key, committed_queue, command)

    def status(code: str) -> str:
        return str(Job.objects.get(pk=made[code]).status)

    try:
        wait_until(lambda: status("hang") == "running", 30)
        assert [status(code) for code in ("0", "75", "65", "1")] == [
            "completed",
            "scheduled",
            "dead_letter",
            "scheduled",
        ]
        assert Api(key=key).post(f"jobs/{made['hang']}/cancel").status_code == 202
        wait_until(lambda: status("hang") == "cancelled", 30)
    finally:
        worker.close()
