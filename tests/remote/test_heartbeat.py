"""Heartbeats of workers over HTTP: more time, and what they hear."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from jobs.lifecycle.cancel import cancel_job
from jobs.models import Job, JobLog, Worker, WorkerHeartbeat
from tests.factories import make_job, make_jobs, reload
from tests.remote.conftest import RemoteWorker, ended, lapse_all, proof


def test_a_beat_extends_the_leases_it_names(remote, queue):
    make_jobs(queue, 2)
    [one, other] = remote.take(max_jobs=2)
    Job.objects.update(lease_expires_at=Now() + timedelta(seconds=1))

    answer = remote.beat(proof(one)).json()

    assert answer["leases"] == [
        {"id": one["id"], "status": "ok", "lease_expires_in_ms": queue.visibility_timeout_secs * 1000}
    ]
    assert answer["heartbeat_every_ms"] == 10_000
    ends: dict[Any, Any] = dict(Job.objects.values_list("lease_token", "lease_expires_at"))
    assert ends[UUID(one["lease_token"])] - ends[UUID(other["lease_token"])] > timedelta(seconds=20)


def test_progress_and_log_lines_are_stored(remote, queue, as_viewer):
    make_job(queue)
    [job] = remote.take()
    lines = [{"message": "page 4\0", "level": "warning", "ago_ms": 1500}, {"message": "Bearer abc.def"}]

    remote.beat({**proof(job), "progress_percent": 40, "progress_note": "4 of 10", "logs": lines})

    shown = as_viewer.get(f"jobs/{job['id']}").json()
    assert (shown["progress_percent"], shown["progress_note"]) == (40, "4 of 10")
    stored = list(JobLog.objects.order_by("id"))
    assert [(line.level, line.message) for line in stored] == [("warning", "page 4\ufffd"), ("info", "Bearer ***")]
    assert timedelta(seconds=1) < stored[1].ts - stored[0].ts < timedelta(seconds=2)


def test_it_hears_that_a_job_is_to_stop(remote, queue):
    make_job(queue)
    [job] = remote.take()
    cancel_job(reload(job["id"]).pk, reason="no")

    assert remote.beat(proof(job)).json()["leases"][0]["status"] == "cancel_requested"
    assert remote.finish(ended(job, "cancelled")).json()["results"][0]["job_status"] == "cancelled"


def test_a_lost_lease_is_told_and_nothing_is_written(remote, queue):
    make_job(queue)
    [job] = remote.take()
    lapse_all()

    answer = remote.beat({**proof(job), "progress_percent": 90, "logs": [{"message": "late"}]})

    assert answer.json()["leases"] == [{"id": job["id"], "status": "lost", "lease_expires_in_ms": 0}]
    assert reload(job["id"]).progress_percent is None
    assert not JobLog.objects.exists()


def test_another_projects_lease_is_lost_even_with_its_token(remote, queue):
    make_job(queue)
    [job] = remote.take()
    from tests.factories import make_project

    thief = RemoteWorker(make_project(queue.project.organization))
    before = reload(job["id"]).lease_expires_at

    assert thief.beat({**proof(job), "progress_percent": 1}).json()["leases"][0]["status"] == "lost"
    assert thief.finish(ended(job)).status_code == 409
    assert (reload(job["id"]).lease_expires_at, reload(job["id"]).progress_percent) == (before, None)


def test_a_beat_says_that_the_worker_lives(remote, queue):
    row_id = remote.claim().json()["worker_id"]
    Worker.objects.update(status="lost", last_seen_at=Now() - timedelta(hours=1))

    remote.beat(state="draining", stats={"cpu_percent": 12.5, "memory_mb": 80})

    worker = Worker.objects.get(pk=row_id)
    assert worker.status == "draining"
    assert Worker.objects.filter(last_seen_at__gt=Now() - timedelta(minutes=1)).exists()
    beat = WorkerHeartbeat.objects.get()
    assert (beat.cpu_percent, beat.memory_mb, beat.active_job_count) == (12.5, 80, 0)


def test_a_beat_of_a_worker_that_never_claimed_is_no_error(remote):
    answer = remote.beat()

    assert (answer.status_code, answer.json()["leases"]) == (200, [])
    assert not Worker.objects.exists()


def test_a_bad_line_names_its_field(remote, queue):
    make_job(queue)
    [job] = remote.take()

    answer = remote.beat({**proof(job), "logs": [{"message": "x", "level": "loud"}]})

    assert answer.status_code == 400
    assert answer.json()["details"][0]["field"] == "leases[0].logs[0].level"
