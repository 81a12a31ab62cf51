"""Commands under real workers: they end with their time, their worker and its grace, and flood nobody."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from jobs.lifecycle.cancel import cancel_job
from jobs.models import Job, JobExecution
from jobs.services.firing import fire_one
from jobs.services.schedules import create_schedule
from queues.models import Queue
from scheduler_project.lib.sql import database_now
from tests.factories import make_job, reload, status_of
from tests.processes import worker
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

ALLOWED = {"APP_SHELL_COMMANDS": "sh,echo,sleep,timeout,head", "APP_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "5"}
MIB = 1024 * 1024


def command(queue: Queue, *argv: str, **payload: Any) -> Job:
    return make_job(queue, "shell.command", payload={"argv": list(argv), **payload}, max_attempts=1)


def pids_in(folder: Path, count: int) -> list[int]:
    """The process ids that a command has written to a file, once all are there."""
    file = folder / "pids"
    return wait_until(
        lambda: (
            [int(p) for p in file.read_text().split()]
            if file.exists() and file.read_text().count("\n") == count
            else []
        ),
        timeout_s=60,
        what="the command has started",
    )


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def result_of(job: Job) -> dict[str, Any]:
    found = reload(job).result
    assert isinstance(found, dict), reload(job).error_message
    return found


def log_lines(job: Job) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("select message from job_logs where job_id = %s order by id", [job.pk])
        return [message for (message,) in cursor.fetchall()]


TREE = "sleep 300 & echo $! >> pids; sleep 300 & echo $! >> pids; echo $$ >> pids; wait"


def test_timeout_kills_the_tree(committed_queue: Queue, tmp_path: Path) -> None:
    with worker(env=ALLOWED):
        job = command(committed_queue, "sh", "-c", TREE, timeout_s=2, cwd=str(tmp_path))
        pids = pids_in(tmp_path, 3)
        wait_until(lambda: status_of(job) == "dead_letter", timeout_s=10)
    assert "timeout: the command did not end within 2 s" in str(reload(job).error_message)
    attempt = JobExecution.objects.get(job=job)
    assert attempt.started_at is not None
    assert 2 <= (attempt.finished_at - attempt.started_at).total_seconds() < 5
    assert not any(map(is_alive, pids))


def test_the_tree_is_asked_before_it_is_killed(committed_queue: Queue, tmp_path: Path) -> None:
    script = "trap 'date +%s%N > asked' TERM; echo $$ >> pids; while :; do sleep 0.1; done"
    with worker(env=ALLOWED):
        job = command(committed_queue, "sh", "-c", script, timeout_s=1, cwd=str(tmp_path))
        pids = pids_in(tmp_path, 1)
        wait_until(lambda: status_of(job) == "dead_letter", timeout_s=30)
    assert not is_alive(pids[0]), "it did not heed SIGTERM"
    attempt = JobExecution.objects.get(job=job)
    asked_at = int((tmp_path / "asked").read_text()) / 1e9
    assert attempt.finished_at.timestamp() - asked_at > 1, "a pause lies between asking and killing"


def test_cancel_kills_the_tree(committed_queue: Queue, tmp_path: Path) -> None:
    with worker(env=ALLOWED):
        job = command(committed_queue, "sh", "-c", TREE, cwd=str(tmp_path))
        pids = pids_in(tmp_path, 3)
        cancel_job(job.pk, reason="enough")
        wait_until(lambda: status_of(job) == "cancelled", timeout_s=10)
        wait_until(lambda: not any(map(is_alive, pids)), timeout_s=5, what="the tree is gone")


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_command_does_not_outlive_a_killed_worker(committed_queue: Queue, tmp_path: Path, trap: str) -> None:
    with worker(env=ALLOWED) as victim:
        command(committed_queue, "sh", "-c", trap + TREE, cwd=str(tmp_path))
        pids = pids_in(tmp_path, 3)
        victim.kill()
        wait_until(lambda: not any(map(is_alive, pids)), timeout_s=10, what="the tree is gone")


def test_command_longer_than_the_grace_is_ended_and_runs_elsewhere_at_once(
    committed_queue: Queue, tmp_path: Path
) -> None:
    job = command(committed_queue, "sh", "-c", "echo $$ >> pids; sleep 120", cwd=str(tmp_path))
    with worker(env=ALLOWED) as first:
        [pid] = pids_in(tmp_path, 1)
        with worker(env=ALLOWED) as second:
            wait_until(lambda: second.events("worker_started"))
            began = time.monotonic()
            first.send(signal.SIGTERM)
            assert first.wait(20) == 0
            assert time.monotonic() - began >= 5
            assert not is_alive(pid)
            assert pids_in(tmp_path, 2)[0] == pid
            wait_until(lambda: status_of(job) == "running")
    attempt = JobExecution.objects.get(job=job, fencing_number=1)
    assert (attempt.status, reload(job).attempt_count) == ("interrupted", 0)


@pytest.mark.parametrize(
    ("argv", "at_least"),
    [(["timeout", "5", "yes"], MIB), (["head", "-c", "200000000", "/dev/zero"], 200_000_000)],
    ids=["yes", "no newline"],
)
def test_flood_fills_neither_memory_nor_rows(committed_queue: Queue, argv: list[str], at_least: int) -> None:
    with worker(env=ALLOWED) as process:
        warm = command(committed_queue, "echo", "warm")
        wait_until(lambda: status_of(warm) == "completed")
        before = most = process.memory()
        script = '"$@"; echo "the end"'  # timeout itself ends with 124
        job = command(committed_queue, "sh", "-c", script, "sh", *argv)
        while status_of(job) in ("queued", "claimed", "running"):
            most = max(most, process.memory())
        result = result_of(job)
    assert most - before < 50 * MIB, f"grew by {(most - before) / MIB:.0f} MiB"
    assert result["output_bytes"] > at_least
    assert result["cut_bytes"] == result["output_bytes"] - 65_536
    assert len(result["output"]) < 65_536 + 100
    assert f"{result['cut_bytes']} bytes were cut here" in result["output"]
    assert result["output"].endswith("the end\n")
    lines = log_lines(job)
    assert lines
    assert sum(map(len, lines)) < 200_000


def test_nothing_in_the_arguments_reaches_a_shell(committed_queue: Queue, tmp_path: Path) -> None:
    text = "$(touch pwned); `touch pwned`; x | touch pwned"
    with worker(env=ALLOWED):
        job = command(committed_queue, "echo", text, cwd=str(tmp_path))
        wait_until(lambda: status_of(job) == "completed")
        wait_until(lambda: log_lines(job) == [text])
        template = {"argv": ["echo", text], "cwd": str(tmp_path)}
        schedule = create_schedule(
            committed_queue, name="s", cron_expression="0 0 1 1 *", job_type="shell.command", payload_template=template
        )
        fired = Job.objects.get(pk=fire_one(schedule, database_now()))
        wait_until(lambda: status_of(fired) == "completed")
    assert result_of(job)["output"] == result_of(fired)["output"] == text + "\n"
    assert list(tmp_path.iterdir()) == []


def test_worker_without_a_list_refuses_for_good(committed_queue: Queue) -> None:
    with worker():
        job = make_job(committed_queue, "shell.command", payload={"argv": ["echo"]}, max_attempts=5)
        wait_until(lambda: status_of(job) == "dead_letter")
    assert "APP_SHELL_COMMANDS" in str(reload(job).error_message)
    assert JobExecution.objects.filter(job=job).count() == 1
