"""Queues and retry policies through the API."""

from __future__ import annotations

import pytest

from dlq.models import DeadLetter
from jobs.decisions import Failed, Succeeded
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.new_job import Parent
from queues.models import Queue
from queues.services import create_retry_policy
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, claim_one, make_job, make_project, make_queue
from tests.personas import Api, field_of

NO_DEPTH = {"queued": 0, "scheduled": 0, "claimed": 0, "running": 0, "dead_letter": 0}


@pytest.fixture
def as_manager(manager):
    return Api(manager)


def _create(api, project, **fields):
    return api.post("queues", {"project_id": str(project.pk), "name": "q1", **fields})


def test_a_queue_is_created_with_defaults_and_read_back(as_manager, project):
    answer = _create(as_manager, project)

    assert answer.status_code == 201
    body = answer.json()
    assert (body["name"], body["is_paused"], body["max_concurrency"]) == ("q1", False, None)
    assert body["visibility_timeout_secs"] == 60
    assert body["depth"] == NO_DEPTH
    assert as_manager.get(f"queues/{body['id']}").json() == body


def test_a_key_need_not_name_its_project(as_machine, project):
    answer = as_machine.post("queues", {"name": "q1", "max_concurrency": 3, "priority": -5})

    assert answer.status_code == 201
    assert answer.json()["project_id"] == str(project.pk)
    assert (answer.json()["max_concurrency"], answer.json()["priority"]) == (3, -5)


def test_a_person_must_name_the_project(as_manager):
    answer = as_manager.post("queues", {"name": "q1"})

    assert (answer.status_code, field_of(answer)) == (400, "project_id")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", " "),
        ("name", 5),
        ("name", "a" * 101),
        ("name", "a\u200bb"),
        ("name", "a\nb"),
        ("name", "a/b"),
        ("priority", 10_001),
        ("priority", None),
        ("max_concurrency", 0),
        ("max_concurrency", -1),
        ("max_concurrency", 100_001),
        ("max_concurrency", 2**40),
        ("max_concurrency", True),
        ("visibility_timeout_secs", 0),
        ("visibility_timeout_secs", 86_401),
        ("visibility_timeout_secs", 1.5),
        ("rate_limit", 5),
        ("rate_period_secs", 5),
        ("default_retry_policy_id", "01890a5d-ac96-774b-bcce-b302099a8057"),
        ("is_paused", True),
    ],
)
def test_bad_queues_are_refused_by_field(as_manager, project, field, value):
    answer = _create(as_manager, project, **{field: value})

    assert answer.status_code == 400, answer.content
    expected = {"rate_limit": "rate_period_secs", "rate_period_secs": "rate_limit"}.get(field, field)
    assert field_of(answer) == expected
    assert not Queue.objects.exists()


def test_names_are_unique_in_a_project_after_normalising(as_manager, project):
    assert _create(as_manager, project, name="caf\u00e9").status_code == 201

    twin = _create(as_manager, project, name="cafe\u0301")
    elsewhere = _create(as_manager, make_project(project.organization), name="caf\u00e9")

    assert (twin.status_code, field_of(twin)) == (409, "name")
    assert elsewhere.status_code == 201


def test_depth_counts_what_is_not_finished(as_viewer, queue):
    for _ in range(4):
        make_job(queue)
    parent = make_job(queue, delay_s=60)
    make_job(queue, depends_on=[Parent(parent.pk)])
    claim_from(queue, 2, starts=1)
    dead, done = make_job(queue, max_attempts=1, priority=9), None
    settle([Ending.of(claim_one(queue), Failed("x"), str(uuid7()))])
    done = make_job(queue, priority=9)
    settle([Ending.of(claim_one(queue), Succeeded(), str(uuid7()))])
    DeadLetter.objects.get(job_id=dead.pk)

    depth = as_viewer.get(f"queues/{queue.pk}").json()["depth"]

    assert done
    assert depth == {"queued": 2, "scheduled": 2, "claimed": 1, "running": 1, "dead_letter": 1}


def test_the_list_costs_the_same_however_many_queues_there_are(as_viewer, project, django_assert_num_queries):
    for _ in range(5):
        make_job(make_queue(project))

    with django_assert_num_queries(3):  # who, the page, all depths
        items = as_viewer.get("queues").json()["items"]
    assert [item["depth"]["queued"] for item in items] == [1] * 5
    with django_assert_num_queries(4):
        as_viewer.get("queues", project_id=project.pk, limit=2)


def test_pausing_stops_claims_and_resuming_lets_them_go_on(as_manager, queue):
    make_job(queue)

    paused = as_manager.post(f"queues/{queue.pk}/pause", {"reason": "deploy"})
    held = claim_from(queue)
    resumed = as_manager.send("post", f"queues/{queue.pk}/resume")

    assert (paused.status_code, paused.json()["is_paused"], paused.json()["paused_reason"]) == (200, True, "deploy")
    assert held == []
    assert (resumed.status_code, resumed.json()["is_paused"], resumed.json()["paused_reason"]) == (200, False, "")
    assert len(claim_from(queue)) == 1


def test_pausing_twice_is_no_error(as_manager, queue):
    for _ in range(2):
        assert as_manager.post(f"queues/{queue.pk}/pause").status_code == 200


def test_resuming_wakes_the_workers(as_manager, queue, monkeypatch):
    hints = []
    monkeypatch.setattr("queues.api.queues.hint", lambda *topic: hints.append(topic))

    as_manager.post(f"queues/{queue.pk}/resume")

    assert hints == [("work", str(queue.pk))]


def test_a_queue_is_deleted_when_its_jobs_have_ended(as_manager, queue):
    for delay_s in (0, 60):
        job = make_job(queue, delay_s=delay_s)
        refused = as_manager.delete(f"queues/{queue.pk}")
        as_manager.post(f"jobs/{job.pk}/cancel")
        assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    make_job(queue)
    lease = claim_one(queue)
    assert as_manager.delete(f"queues/{queue.pk}").status_code == 409
    settle([Ending.of(lease, Succeeded(), str(uuid7()))])

    answer = as_manager.delete(f"queues/{queue.pk}")

    assert (answer.status_code, answer.content) == (204, b"")
    assert as_manager.get(f"queues/{queue.pk}").status_code == 404
    assert as_manager.get("queues").json()["items"] == []
    assert as_manager.post("jobs", {"queue_id": str(queue.pk), "job_type": "noop"}).status_code == 404
    assert _create(as_manager, queue.project, name=queue.name).status_code == 201


def _policy(api, project, **fields):
    return api.post("retry-policies", {"project_id": str(project.pk), "name": "p1", **fields})


def test_a_policy_is_created_listed_read_and_deleted(as_manager, project):
    made = _policy(as_manager, project, strategy="linear", base_delay_ms=500, max_attempts=9, jitter=False)

    assert made.status_code == 201
    body = made.json()
    assert (body["strategy"], body["base_delay_ms"], body["max_attempts"], body["jitter"]) == ("linear", 500, 9, False)
    assert as_manager.get("retry-policies").json()["items"] == [body]
    assert as_manager.get("retry-policies", project_id=project.pk).json()["items"] == [body]
    assert as_manager.get(f"retry-policies/{body['id']}").json() == body
    assert as_manager.delete(f"retry-policies/{body['id']}").status_code == 204
    assert as_manager.get(f"retry-policies/{body['id']}").status_code == 404
    assert as_manager.delete(f"retry-policies/{body['id']}").status_code == 404


def test_jitter_is_on_unless_said_otherwise(as_manager, project):
    assert _policy(as_manager, project).json()["jitter"] is True


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("strategy", "quadratic"),
        ("base_delay_ms", -1),
        ("base_delay_ms", True),
        ("base_delay_ms", 1.5),
        pytest.param("base_delay_ms", 10**4_000, id="huge"),
        ("multiplier", 0.5),
        ("multiplier", 101),
        ("multiplier", "2"),
        ("max_delay_ms", 2_592_000_001),
        ("max_attempts", 0),
        ("max_attempts", 1_001),
        ("jitter", 1),
        ("jitter", 0.5),
        ("jitter", None),
        ("name", "x" * 101),
    ],
)
def test_bad_policies_are_refused_by_field(as_manager, project, field, value):
    answer = _policy(as_manager, project, **{field: value})

    assert (answer.status_code, field_of(answer)) == (400, field)


def test_policy_names_are_unique_in_a_project(as_manager, project):
    _policy(as_manager, project)

    again = _policy(as_manager, project)

    assert (again.status_code, field_of(again)) == (409, "name")


def test_a_policy_in_use_stays(as_manager, project, queue):
    of_queue, of_job = create_retry_policy(project, name="a"), create_retry_policy(project, name="b")
    as_manager.post(
        "queues", {"project_id": str(project.pk), "name": "q2", "default_retry_policy_id": str(of_queue.pk)}
    )
    make_job(queue, retry_policy_id=of_job.pk)

    for policy, user in ((of_queue, "queue"), (of_job, "job")):
        answer = as_manager.delete(f"retry-policies/{policy.pk}")
        assert answer.status_code == 409
        assert user in answer.json()["message"]
