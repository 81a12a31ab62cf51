"""Handing jobs to workers over HTTP: which, to whom, once, and again after a lost answer."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from jobs.models import Job, Worker, WorkerClaim
from jobs.services.remote.claiming import forget_claims
from orgs.models import ApiKey, AuditEntry
from tests.factories import make_job, make_jobs, make_project, make_queue, path_of, status_of
from tests.personas import Api, make_key
from tests.remote.conftest import RemoteWorker, ended, lapse_all, new_id
from tests.threads import run_together
from tests.waiting import wait_until


def test_a_job_comes_with_all_a_worker_needs(remote, queue):
    job = make_job(queue, "mail.send", payload={"to": ["a"], "big": 2**70}, priority=3, trace_id="t1")

    answer = remote.claim(info={"name": "box", "pid": 7, "version": "sh/1", "slots": 2})

    shown = answer.json()
    [handed] = shown.pop("jobs")
    assert shown["directive"] == "run"
    assert shown["heartbeat_every_ms"] == min(10_000, queue.visibility_timeout_secs * 1000 // 3)
    job.refresh_from_db()
    assert handed.pop("lease_expires_in_ms") <= queue.visibility_timeout_secs * 1000
    assert handed == {
        "id": str(job.pk),
        "lease_token": str(job.lease_token),
        "job_type": "mail.send",
        "queue_id": str(queue.pk),
        "queue": queue.name,
        "attempt": 1,
        "fencing_number": 1,
        "priority": 3,
        "trace_id": "t1",
        "created_at": job.created_at.isoformat().replace("+00:00", "Z"),
        "payload": {"to": ["a"], "big": 2**70},
    }
    assert (job.status, str(job.locked_by)) == ("running", shown["worker_id"])
    worker = Worker.objects.get(pk=shown["worker_id"])
    assert (worker.hostname, worker.pid, worker.version, worker.max_concurrency) == ("box", 7, "sh/1", 2)
    assert worker.project_id == queue.project_id


def test_a_worker_without_a_parser_can_cut_the_answer(remote, queue):
    make_job(queue, payload={"lease_token": "x", "payload": {"id": 1}})

    text = remote.claim().content.decode()

    assert text.index('"jobs":[') > text.index('"retry_after_ms"')
    assert text.split('"payload":', 1)[1] == '{"payload":{"id":1},"lease_token":"x"}}]}'


def test_no_work_is_an_empty_answer(remote, queue):
    assert remote.take(max_jobs=5) == []
    assert WorkerClaim.objects.count() == 0


def test_queues_are_served_in_the_order_given(remote, project):
    first, second = make_queue(project), make_queue(project)
    made = [make_job(second), make_job(first)]

    by_path = remote.take(queues=[path_of(first), str(second.pk)], max_jobs=2)

    assert [job["id"] for job in by_path] == [str(made[1].pk), str(made[0].pk)]


def test_names_and_types_choose(remote, project):
    queue = make_queue(project)
    make_job(queue, "a.one")
    two, three = make_job(queue, "b.two"), make_job(queue, "c.three")

    assert [job["id"] for job in remote.take(queues=[queue.name], types=["b.two"], max_jobs=9)] == [str(two.pk)]
    assert [job["id"] for job in remote.take(types=["c.*"], max_jobs=9)] == [str(three.pk)]


@pytest.mark.parametrize("form", ["id", "name", "path"])
def test_another_projects_queue_does_not_exist(remote, organization, form):
    foreign = make_queue(make_project(organization))
    make_job(foreign)
    ref = {"id": str(foreign.pk), "name": foreign.name, "path": path_of(foreign)}[form]

    answer, unknown = remote.claim(queues=[ref]), remote.claim(queues=[new_id()])

    assert answer.status_code == unknown.status_code == 404
    assert answer.content == unknown.content
    assert remote.take(max_jobs=9) == []


def test_the_same_claim_is_answered_again(remote, queue):
    make_jobs(queue, 5)
    claim_id = new_id()

    first = remote.take(claim_id=claim_id, max_jobs=2)
    again = remote.take(claim_id=claim_id, max_jobs=2)
    other = remote.take(claim_id=new_id(), max_jobs=9)

    def proofs(jobs):
        return [(job["id"], job["lease_token"]) for job in jobs]

    assert len(first) == 2
    assert proofs(again) == proofs(first)
    assert len(other) == 3
    assert not set(proofs(other)) & set(proofs(first))


def test_an_old_claim_hands_out_nothing_anew(remote, queue):
    make_jobs(queue, 3)
    claim_id = new_id()
    [one, _] = remote.take(claim_id=claim_id, max_jobs=2)
    remote.finish(ended(one))

    assert len(remote.take(claim_id=claim_id, max_jobs=2)) == 1
    lapse_all()
    assert remote.take(claim_id=claim_id, max_jobs=2) == []


def test_a_claim_that_found_nothing_may_be_asked_again(remote, queue):
    claim_id = new_id()
    assert remote.take(claim_id=claim_id) == []
    make_job(queue)

    assert len(remote.take(claim_id=claim_id)) == 1


def test_a_claims_id_belongs_to_its_worker_and_project(remote, queue):
    make_jobs(queue, 2)
    claim_id = new_id()
    remote.take(claim_id=claim_id)

    assert RemoteWorker(queue.project).claim(claim_id=claim_id).status_code == 409
    elsewhere = make_queue()
    job = make_job(elsewhere)
    assert [j["id"] for j in RemoteWorker(elsewhere.project).take(claim_id=claim_id)] == [str(job.pk)]


@pytest.mark.django_db(transaction=True)
def test_one_claim_sent_many_times_at_once_is_one_claim(committed_queue):
    make_jobs(committed_queue, 30)
    remote, claim_id = RemoteWorker(committed_queue.project), new_id()

    answers = run_together([lambda: remote.take(claim_id=claim_id, max_jobs=3)] * 6)

    assert {tuple(job["lease_token"] for job in jobs) for jobs in answers if jobs} == {
        tuple(map(str, WorkerClaim.objects.get().tokens))
    }
    assert Job.objects.in_flight().count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_waiting_claim_gets_the_job_that_arrives(committed_queue):
    remote = RemoteWorker(committed_queue.project)
    alive = Worker.objects.filter(project=committed_queue.project)

    def submit_once_it_waits():
        wait_until(alive.exists, what="the worker's row")
        return [{"id": str(make_job(committed_queue).pk)}]

    waited, made = run_together([lambda: remote.take(wait_ms=20_000), submit_once_it_waits])

    assert [job["id"] for job in waited] == [job["id"] for job in made]


def test_waiting_ends_in_time(remote, queue):
    assert remote.take(wait_ms=150) == []


def test_without_a_place_to_wait_the_answer_comes_at_once(remote, queue, monkeypatch):
    import threading

    from scheduler_project.lib.rest import parking

    monkeypatch.setattr(parking, "_places", threading.BoundedSemaphore(1))
    assert parking._places.acquire(blocking=False)

    answer = remote.claim(wait_ms=30_000).json()

    assert (answer["jobs"], answer["retry_after_ms"]) == ([], 1_000)


def test_a_paused_queue_and_a_full_one_hand_out_nothing(remote, project):
    paused, full = make_queue(project, is_paused=True), make_queue(project, max_concurrency=1)
    make_job(paused)
    make_jobs(full, 3)

    assert len(remote.take(max_jobs=9)) == 1
    assert remote.take(max_jobs=9) == []


def test_an_asked_worker_drains(remote, queue, as_owner, as_outsider):
    make_job(queue)
    worker_id = remote.claim(types=["nothing"]).json()["worker_id"]

    assert as_outsider.post(f"workers/{worker_id}/drain").status_code == 404
    assert as_owner.post(f"workers/{worker_id}/drain").status_code == 202
    assert AuditEntry.objects.get().action == "worker.drain"

    claimed = remote.claim(wait_ms=20_000).json()
    assert (claimed["directive"], claimed["jobs"]) == ("drain", [])
    assert remote.beat().json()["directive"] == "drain"
    remote.beat(state="stopped")
    assert as_owner.post(f"workers/{worker_id}/drain").status_code == 409


def test_only_its_own_project_sees_a_worker_over_http(remote, queue, as_viewer, as_outsider):
    remote.claim(info={"name": "secret-host"})

    assert [w["hostname"] for w in as_viewer.get("workers").json()["items"]] == ["secret-host"]
    assert as_outsider.get("workers").json()["items"] == []


@pytest.mark.parametrize("scope", [ApiKey.Scope.READ, ApiKey.Scope.SUBMIT])
def test_lesser_keys_run_nothing(project, scope):
    assert RemoteWorker(project, scope).claim().status_code == 403


def test_people_run_nothing(as_owner):
    assert as_owner.post("worker/claim", {"worker_id": new_id()}).status_code == 403


def test_a_key_that_works_sees_nothing_else(project, queue):
    api, job = Api(key=make_key(project, ApiKey.Scope.WORK)), make_job(queue)

    for path in ("jobs", "queues", "dead-letter", f"jobs/{job.pk}", f"queues/{queue.pk}"):
        assert api.get(path).status_code == 403, path
    assert api.post("jobs", {"queue_id": str(queue.pk), "job_type": "x"}).status_code == 403
    assert api.post(f"jobs/{job.pk}/cancel").status_code == 403


def test_old_claims_are_forgotten(remote, queue):
    make_jobs(queue, 2)
    first = new_id()
    remote.take(claim_id=first)
    remote.take(claim_id=new_id())
    WorkerClaim.objects.filter(claim_id=first).update(expires_at=Now())

    assert (forget_claims(10), WorkerClaim.objects.count()) == (1, 1)


def test_a_claim_is_written_with_its_leases_or_not_at_all(remote, queue, monkeypatch):
    job = make_job(queue)

    def fail(**_):
        raise RuntimeError("died here")

    monkeypatch.setattr(WorkerClaim.objects, "create", fail)
    assert remote.claim(claim_id=new_id()).status_code == 500

    assert status_of(job) == "queued"
