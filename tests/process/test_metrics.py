"""What the three kinds of processes say at /metrics after a known load."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jobs.models import WHOLE_PROJECT, JobExecution, JobStat, JobStatDelta
from tests.factories import make_job, make_jobs, path_of
from tests.processes import Process
from tests.servers import web_server
from tests.sizes import long
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]
JOBS = 40


def scrape(url: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = urllib.request.urlopen(url, timeout=10).read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def is_gone(process: Process) -> Callable[[], bool]:
    return lambda: process.popen.poll() is not None


def folded() -> bool:
    done = sum(JobStat.objects.filter(grain="all").exclude(queue_id=WHOLE_PROJECT).values_list("started", flat=True))
    return not JobStatDelta.objects.exists() and done == JobExecution.objects.count()


def test_web_worker_and_scheduler_say_what_was_done(committed_queue, unused_port):
    queue, path = committed_queue, path_of(committed_queue)
    make_jobs(queue, JOBS)
    make_job(queue, job_type="failing", max_attempts=1)
    make_job(queue, delay_s=3_600)
    worker_port, scheduler_port = unused_port + 1, unused_port + 2
    with (
        Process("runscheduler", "--metrics-port", str(scheduler_port)),
        Process("runworker", "--metrics-port", str(worker_port)),
        web_server(unused_port, WEB_CONCURRENCY="2") as url,
    ):
        of_web: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}

        def is_counted() -> bool:
            nonlocal of_web
            of_web = scrape(f"{url}/metrics")
            return (
                of_web.get(key("jobs_completed_total", queue=path, job_type="noop")) == JOBS
                and of_web.get(key("dlq_size", queue=path)) == 1
                and of_web.get(key("queue_depth", queue=path, status="queued")) == 0
            )

        wait_until(is_counted, 40, what="the counts of the web")
        of_worker = scrape(f"http://127.0.0.1:{worker_port}/metrics")
        of_scheduler = scrape(f"http://127.0.0.1:{scheduler_port}/metrics")
        wait_until(is_counted, 40, what="the same counts once more")

    assert of_web[key("jobs_created_total", queue=path, job_type="noop")] == JOBS + 1
    assert of_web[key("jobs_failed_total", queue=path, job_type="failing", terminal="true")] == 1
    assert of_web[key("jobs_failed_total", queue=path, job_type="failing", terminal="false")] == 0
    assert of_web[key("queue_depth", queue=path, status="scheduled")] == 1
    assert of_web[key("lease_expirations_total", queue=path)] == 0
    assert of_web[key("job_execution_duration_seconds_count", queue=path, job_type="noop")] == JOBS
    assert of_web[key("job_wait_seconds_count", queue=path, job_type="noop")] == JOBS
    assert of_web[key("scheduler_database_up")] == 1
    [up] = [labels for name, labels in of_worker if name == "worker_up"]
    worker_id = dict(up)["worker_id"]
    assert of_worker[key("jobs_claimed_total", queue=path, worker_id=worker_id)] == JOBS + 1
    assert of_worker[key("worker_active_jobs", worker_id=worker_id)] == 0
    assert of_worker[key("listener_connected")] == 1
    assert of_worker[key("settle_batch_size_sum")] == JOBS + 1
    assert of_worker[key("claim_duration_seconds_count")] >= 1
    assert of_scheduler[key("scheduler_is_leader")] == 1
    assert of_scheduler[key("scheduler_duty_seconds_count", duty="statistics")] >= 1
    assert not any(name == "jobs_completed_total" for name, _ in [*of_worker, *of_scheduler])


@long
def test_killed_workers_and_schedulers_neither_double_nor_lose_a_count(committed_queue):
    make_jobs(committed_queue, 300, job_type="sleep_5")
    with Process("runscheduler") as scheduler, Process("runworker") as worker:
        wait_until(lambda: JobExecution.objects.count() > 50, 30, what="some work")
        worker.popen.kill()
        scheduler.popen.kill()
    with Process("runscheduler"), Process("runworker", "--concurrency", "20"):
        wait_until(lambda: JobExecution.objects.filter(status="completed").count() == 300, 60, what="all jobs")
        wait_until(folded, 30, what="the statistics")

    rows = list(JobStat.objects.filter(grain="all").exclude(queue_id=WHOLE_PROJECT))
    assert sum(row.created for row in rows) == 300
    assert sum(row.completed for row in rows) == 300
    assert sum(row.expired for row in rows) == JobExecution.objects.filter(status="lost").count()


def test_a_taken_port_is_one_clear_line(committed_queue, unused_port):
    with web_server(unused_port):
        for command in ("runworker", "runscheduler"):
            with Process(command, "--metrics-port", str(unused_port)) as process:
                wait_until(is_gone(process), 20, what="the refusal")
                assert process.popen.returncode == 1
                assert "can not start" in process.output()
                assert "Traceback" not in process.output()


def is_served(port: int) -> bool:
    try:
        return bool(scrape(f"http://127.0.0.1:{port}"))
    except OSError:
        return False


def test_of_several_on_one_machine_the_first_has_the_port_of_the_setting(committed_queue, unused_port):
    at = {"APP_METRICS_PORT": str(unused_port)}
    with Process("runworker", env=at) as first:
        wait_until(lambda: is_served(unused_port), 20, what="the first one's metrics")
        with Process("runworker", env=at) as second:
            wait_until(lambda: "metrics_port_taken" in second.output(), 20, what="the second one's word")
            assert second.popen.poll() is None
        assert "metrics_port_taken" not in first.output()
