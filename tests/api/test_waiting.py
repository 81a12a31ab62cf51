"""Waiting for a job's end, explaining why it does not run, totals, and what probes are told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client

from jobs.decisions import Failed, Succeeded
from jobs.lifecycle.submit import NewJob, Parent, submit_job
from jobs.models import Job, LeaderTerm, Worker
from queues.services import hide_queue
from tests.factories import claim_one, end, job_in, make_job, make_jobs, make_queue, path_of
from tests.personas import Api, field_of, make_key


# -- waiting --------------------------------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_waiting_ends_with_the_job(committed_queue):
    job = make_job(committed_queue)
    api = Api(key=make_key(committed_queue.project))
    lease = claim_one(committed_queue)

    def finish() -> None:
        end(lease, Succeeded('{"n":1}'))
        connection.close()

    timer = threading.Timer(0.2, finish)
    timer.start()
    answer = api.get(f"jobs/{job.pk}", wait_ms=20_000)
    timer.join()

    assert (answer.json()["status"], answer.json()["result"]) == ("completed", {"n": 1})


def test_waiting_in_vain_answers_what_there_is(as_machine, queue):
    job = make_job(queue)

    assert as_machine.get(f"jobs/{job.pk}", wait_ms=60).json()["status"] == "queued"


@pytest.mark.parametrize("wait", ["-1", "30001", "x", "1.5"])
def test_odd_waits_are_refused(as_machine, queue, wait):
    answer = as_machine.get(f"jobs/{make_job(queue).pk}", wait_ms=wait)

    assert (answer.status_code, field_of(answer)) == (400, "wait_ms")


def test_an_ended_job_is_answered_at_once(as_machine, queue, monkeypatch):
    monkeypatch.setattr("jobs.api.jobs.look_until", None)

    assert as_machine.get(f"jobs/{job_in('completed', queue).job.pk}", wait_ms=30_000).status_code == 200


# -- explaining -----------------------------------------------------------------------------------------------
@pytest.fixture
def why(as_machine) -> Callable[[object], dict[str, Any]]:
    def ask(job_id):
        body = as_machine.get(f"jobs/{job_id}/explain").json()
        return {reason["code"]: reason for reason in body["reasons"]}

    return ask


@pytest.fixture
def worker(db) -> Worker:
    return Worker.objects.create(hostname="h1", pid=1, version="1", max_concurrency=1)


def test_a_job_that_nothing_stops_is_next(why, worker, queue):
    assert set(why(make_job(queue).pk)) == {"next"}


def test_without_a_worker_for_its_queue_it_waits(why, worker, queue):
    job = make_job(queue)
    Worker.objects.update(subscribed_queues=["a/b/c"])
    assert "no_worker" in why(job.pk)
    Worker.objects.update(subscribed_queues=["a/b/c", path_of(queue)])
    assert "no_worker" not in why(job.pk)
    Worker.objects.update(status="lost")
    assert "no_worker" in why(job.pk)


def test_a_pause_is_told_with_its_reason(why, worker, as_machine, queue):
    job = make_job(queue)
    as_machine.post(f"queues/{queue.pk}/pause", {"reason": "migration"})

    assert why(job.pk)["queue_paused"]["paused_reason"] == "migration"


def test_a_full_queue_names_who_holds_its_slots(why, worker, project):
    queue = make_queue(project, max_concurrency=1)
    make_job(queue, "slow")
    lease = claim_one(queue, worker_id=worker.pk)
    waiting = make_job(queue)

    [holder] = why(waiting.pk)["at_limit"]["holders"]

    assert (holder["job_id"], holder["job_type"], holder["hostname"]) == (lease.job_id, "slow", "h1")
    assert holder["since"]


def test_its_place_in_the_line_is_counted(why, worker, queue):
    make_jobs(queue, 3)
    job = make_job(queue)
    make_job(queue, priority=5)
    make_job(queue, priority=-5)

    assert why(job.pk)["in_line"]["jobs_ahead"] == 4


def test_a_job_that_waits_names_its_open_parents(why, worker, queue):
    done, open_ = job_in("completed", queue).job, make_job(queue)
    child = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(done.pk), Parent(open_.pk)])).id

    [parent] = why(child)["blocked"]["parents"]
    assert parent == {"job_id": str(open_.pk), "status": "queued", "on_failure": "cancel"}


def test_times_to_come_and_retries(why, worker, queue):
    later = make_job(queue, delay_s=60)
    make_job(queue)
    retried = claim_one(queue)
    end(retried, Failed("x"))

    assert why(later.pk)["not_due"]["in_s"] > 50
    assert why(retried.job_id)["waiting_to_retry"]["attempts_used"] == 1


def test_a_due_job_needs_a_scheduler(why, worker, queue):
    job = make_job(queue, delay_s=60)
    Job.objects.filter(pk=job.pk).update(run_at=Now())
    assert "no_scheduler" in why(job.pk)
    LeaderTerm.objects.create(hostname="h", pid=1, backend_pid=1)
    assert "promotion_pending" in why(job.pk)


def test_running_and_ended_jobs_say_so(why, worker, queue):
    make_job(queue)
    lease = claim_one(queue, worker_id=worker.pk)
    running = why(lease.job_id)
    end(lease, Succeeded())

    assert running["in_flight"]["worker_id"] == str(worker.pk)
    assert set(why(lease.job_id)) == {"ended"}


def test_a_deleted_queue_is_told(why, worker, queue):
    job = make_job(queue)
    hide_queue(queue)

    assert "queue_deleted" in why(job.pk)


# -- retry ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", ["completed", "failed", "dead_letter", "cancelled"])
def test_an_ended_job_runs_again(as_machine, queue, status):
    job = job_in(status, queue).job

    answer = as_machine.post(f"jobs/{job.pk}/retry")
    again = as_machine.post(f"jobs/{job.pk}/retry")

    assert (answer.status_code, answer.json()["status"], again.status_code) == (200, "queued", 409)


# -- totals ---------------------------------------------------------------------------------------------------
def test_totals_count_what_the_person_sees(as_owner, as_outsider, worker, queue):
    job_in("completed", queue)
    make_jobs(queue, 2)
    make_job(queue, delay_s=60)

    body = as_owner.get("metrics/system").json()

    assert body["jobs"] == {
        "scheduled": 1, "queued": 2, "claimed": 0, "running": 0,
        "completed": 1, "failed": 0, "dead_letter": 0, "cancelled": 0,
    }  # fmt: skip
    assert (body["queues"], body["workers"]["active"], body["dead_letters"]) == ({"total": 1, "paused": 0}, 1, 0)
    assert body["queue_depth"][0]["queued"] == 2
    assert body["last_minute"]["completed"] == 1
    foreign = as_outsider.get("metrics/system").json()
    assert sum(foreign["jobs"].values()) == foreign["last_minute"]["completed"] == foreign["queues"]["total"] == 0


# -- probes ---------------------------------------------------------------------------------------------------
def test_probes_are_answered_whatever_host_they_name(db, settings):
    settings.ALLOWED_HOSTS = ["punctual.example"]
    settings.SECURE_SSL_REDIRECT = True

    for path, status in (("/healthz", 200), ("/readyz", 200)):
        for host in ("10.0.0.7:3000", "evil.example", "_"):
            answer = Client().get(path, headers={"Host": host})
            assert answer.status_code == status, host
            assert answer["X-Request-Id"]
    assert Client().post("/healthz").status_code == 405
    assert Client().get("/api/jobs", headers={"Host": "evil.example"}).status_code in {301, 400}
