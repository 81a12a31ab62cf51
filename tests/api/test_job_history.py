"""What the API tells of a job's attempts and log lines, and of workers."""

from __future__ import annotations

from jobs.decisions import Failed, Succeeded
from jobs.lease import Ending
from jobs.lifecycle.requeue import requeue_job
from jobs.lifecycle.settle import settle
from jobs.models import Job, JobLog, Worker, WorkerHeartbeat
from jobs.services import workers
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_one, make_job
from tests.personas import all_items


def _end(queue, verdict, worker_id=None):
    lease = claim_one(queue, worker_id=worker_id)
    settle([Ending.of(lease, verdict, str(worker_id or uuid7()), ran_ms=12.5)])
    return lease


def _again(job):
    requeue_job(job.pk, by=None)


def test_attempts_are_listed_latest_first(as_viewer, queue):
    job = make_job(queue, max_attempts=1)
    worker_id = uuid7()
    _end(queue, Failed("boom", "Traceback …"), worker_id)
    _again(job)
    _end(queue, Succeeded('{"ok": true}'), worker_id)

    items = as_viewer.get(f"jobs/{job.pk}/executions").json()["items"]

    assert [item["status"] for item in items] == ["completed", "failed"]
    assert items[0]["result"] == {"ok": True}
    assert items[1]["error_message"] == "boom"
    assert items[1]["error_stack"].startswith("Traceback")
    assert items[1]["worker_id"] == str(worker_id)
    assert items[1]["duration_ms"] == 12.5
    assert all(item["id"] and item["finished_at"] for item in items)


def test_the_running_attempt_comes_first_without_its_token(as_viewer, queue):
    job = make_job(queue, max_attempts=1)
    _end(queue, Failed("boom"))
    _again(job)
    lease = claim_one(queue)

    answer = as_viewer.get(f"jobs/{job.pk}/executions")

    first, second = answer.json()["items"]
    assert (first["status"], first["id"], first["finished_at"]) == ("running", None, None)
    assert first["worker_id"]
    assert first["claimed_at"]
    assert second["status"] == "failed"
    assert lease.token.encode() not in answer.content
    assert lease.token.encode() not in as_viewer.get(f"jobs/{job.pk}").content


def test_a_claimed_job_has_no_attempt_yet(as_viewer, queue):
    job = make_job(queue)
    claim_one(queue, starts=0)

    assert as_viewer.get(f"jobs/{job.pk}/executions").json()["items"] == []


def test_pages_of_attempts_neither_skip_nor_repeat(as_viewer, queue):
    job = make_job(queue, max_attempts=1)
    for _ in range(5):
        _end(queue, Failed("boom"))
        _again(job)
    claim_one(queue)

    seen = [item["id"] for item in all_items(as_viewer, f"jobs/{job.pk}/executions", 2)]

    assert len(seen) == len(set(seen)) == 6
    assert seen[0] is None
    beyond = as_viewer.get(f"jobs/{job.pk}/executions", limit=2, offset=6).json()
    assert beyond["items"] == []


def test_log_lines_come_in_their_order_and_hide_a_live_token(as_viewer, queue):
    job = make_job(queue, max_attempts=1)
    ended = _end(queue, Failed("boom"))
    _again(job)
    live = claim_one(queue)
    for token, message in ((ended.token, "first"), (ended.token, "second"), (live.token, "third")):
        JobLog.objects.create(project_id=queue.project_id, job=job, execution_id=token, message=message)

    answer = as_viewer.get(f"jobs/{job.pk}/logs")

    items = answer.json()["items"]
    assert [item["message"] for item in items] == ["first", "second", "third"]
    assert [item["execution_id"] for item in items] == [ended.token, ended.token, None]
    assert live.token.encode() not in answer.content
    page = as_viewer.get(f"jobs/{job.pk}/logs", limit=2).json()
    assert (len(page["items"]), page["next_offset"]) == (2, 2)


def test_history_costs_the_same_however_long_it_is(as_viewer, queue, django_assert_num_queries):
    job = make_job(queue, max_attempts=1)
    for _ in range(3):
        _end(queue, Failed("boom"))
        _again(job)

    for path in ("executions", "logs"):
        with django_assert_num_queries(3):
            as_viewer.get(f"jobs/{job.pk}/{path}")
    assert Job.objects.get().pk == job.pk


def test_workers_that_live_are_shown_with_their_last_heartbeat(as_viewer, organization):
    mine, theirs = f"{organization.slug}/p/q", "other-org/p/q"
    alive = workers.register(queue_names=(mine, theirs), seats=4)
    gone = workers.register(queue_names=(), seats=4)
    workers.deregister(gone)
    for active in (1, 3):
        WorkerHeartbeat.objects.create(worker_id=alive, active_job_count=active, cpu_percent=5.5, memory_mb=64)

    [item] = as_viewer.get("workers").json()["items"]

    assert item["id"] == str(alive)
    assert item["latest"] == {"active_job_count": 3, "cpu_percent": 5.5, "memory_mb": 64}
    assert item["subscribed_queues"] == [mine]
    assert (item["status"], item["max_concurrency"]) == ("active", 4)


def test_a_worker_without_a_heartbeat_is_shown_too(as_viewer, django_assert_num_queries):
    Worker.objects.create(hostname="h", pid=1, version="1", max_concurrency=2, status="draining")

    with django_assert_num_queries(3):
        [item] = as_viewer.get("workers").json()["items"]
    assert item["latest"] is None
