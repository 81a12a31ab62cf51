"""Many jobs in one request: all or none, or each on its own; graphs; keys met again."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import Job, JobDependency
from orgs.models import ApiKey
from queues.services import create_retry_policy
from tests.factories import make_job, make_project, make_queue, path_of
from tests.personas import Api, field_of, make_key


def _item(queue, **fields: Any) -> dict[str, Any]:
    return {"queue_id": str(queue.pk), "job_type": "noop", **fields}


def test_jobs_of_several_queues_come_back_in_order(as_member, queue):
    other = make_queue(queue.project)
    jobs = [_item(queue, payload={"n": 1}), _item(other, payload={"n": 2}), _item(queue, payload={"n": 3})]

    answer = as_member.post("jobs/bulk", {"jobs": jobs})

    body = answer.json()
    assert (answer.status_code, body["submitted"], body["replayed"], body["failed"]) == (201, 3, 0, 0)
    assert [result["index"] for result in body["results"]] == [0, 1, 2]
    stored = [Job.objects.get(pk=result["id"]) for result in body["results"]]
    assert [(job.queue_id, job.payload["n"]) for job in stored] == [(queue.pk, 1), (other.pk, 2), (queue.pk, 3)]


def test_a_thousand_jobs_are_one_insert_and_one_more_is_refused(as_machine, queue):
    jobs = [_item(queue)] * 1_000

    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = as_machine.post("jobs/bulk", {"jobs": jobs})

    assert answer.json()["submitted"] == Job.objects.count() == 1_000
    assert len([q for q in queries.captured_queries if "insert into jobs" in q["sql"].lower()]) == 1
    assert len(queries) < 15
    refused = as_machine.post("jobs/bulk", {"jobs": [*jobs, jobs[0]]})
    assert (refused.status_code, field_of(refused)) == (400, "jobs")


def test_one_bad_job_refuses_all_and_every_fault_is_named(as_member, queue):
    jobs = [_item(queue), _item(queue, max_attempts=0), _item(queue, payload="a\u0000b"), 7]

    answer = as_member.post("jobs/bulk", {"jobs": jobs})

    assert answer.status_code == 400
    named = [detail["field"] for detail in answer.json()["details"]]
    assert named[:2] == ["jobs[1].max_attempts", "jobs[2].payload"]
    assert named[2].startswith("jobs[3].")
    assert not Job.objects.exists()


def test_without_atomic_the_good_ones_are_submitted(as_member, queue):
    policy = create_retry_policy(make_project(), name="foreign")
    jobs = [
        _item(queue),
        _item(queue, run_at="never"),
        _item(queue, retry_policy_id=str(policy.pk)),
        {"queue_id": str(make_queue().pk), "job_type": "noop"},
        _item(queue, depends_on=["0193a5d0-0000-7000-8000-000000000000"]),
        _item(queue),
    ]

    answer = as_member.post("jobs/bulk", {"jobs": jobs, "atomic": False})

    results = answer.json()["results"]
    assert answer.status_code == 201
    assert [result["status"] for result in results] == [201, 400, 400, 404, 400, 201]
    assert results[1]["details"][0]["field"] == "run_at"
    assert results[2]["details"][0]["field"] == "retry_policy_id"
    assert results[4]["details"][0]["field"] == "depends_on[0]"
    assert Job.objects.count() == 2


@pytest.mark.parametrize("is_atomic", [True, False])
def test_keys_met_again_answer_with_the_first_job_and_other_work_is_a_conflict(as_member, queue, is_atomic):
    first = as_member.post("jobs/bulk", {"jobs": [_item(queue, idempotency_key="k", payload={"a": 1})]}).json()
    again = [_item(queue, idempotency_key="k", payload={"a": 1.0}), _item(queue, idempotency_key="new")]

    replay = as_member.post("jobs/bulk", {"jobs": again, "atomic": is_atomic}).json()
    other = as_member.post(
        "jobs/bulk",
        {"jobs": [_item(queue, idempotency_key="k", payload={"a": True}), _item(queue)], "atomic": is_atomic},
    )

    assert replay["results"][0]["id"] == first["results"][0]["id"]
    assert [result["status"] for result in replay["results"]] == [200, 201]
    if is_atomic:
        assert (other.status_code, field_of(other)) == (409, "jobs[0].idempotency_key")
        assert Job.objects.count() == 2
    else:
        assert [result["status"] for result in other.json()["results"]] == [409, 201]


def test_one_key_twice_in_a_request_is_one_job(as_member, queue):
    answer = as_member.post("jobs/bulk", {"jobs": [_item(queue, idempotency_key="k")] * 2}).json()

    assert answer["results"][0]["id"] == answer["results"][1]["id"]
    assert Job.objects.count() == 1


def test_a_graph_waits_in_its_order(as_member, queue):
    jobs = [
        _item(queue, ref="a"),
        _item(queue, ref="b", depends_on=["a"]),
        _item(queue, ref="c", depends_on=[{"ref": "a", "on_failure": "run"}, "b"]),
    ]

    results = as_member.post("jobs/bulk", {"jobs": jobs}).json()["results"]

    assert [result["job_status"] for result in results] == ["queued", "scheduled", "scheduled"]
    edges = JobDependency.objects.filter(job_id=results[2]["id"]).values_list("depends_on_job_id", "on_failure")
    assert {(str(id_), on_failure) for id_, on_failure in edges} == {
        (results[0]["id"], "run"),
        (results[1]["id"], "cancel"),
    }


def test_a_cycle_is_named_with_all_its_members(as_member, queue):
    jobs = [_item(queue, ref="a", depends_on=["b"]), _item(queue, ref="b", depends_on=["a"])]

    answer = as_member.post("jobs/bulk", {"jobs": jobs})

    assert (answer.status_code, field_of(answer)) == (400, "jobs[0].depends_on")
    assert "a → b → a" in answer.json()["message"]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ("nobody", "jobs[0].depends_on[0]"),
        (7, "jobs[0].depends_on[0]"),
        ({"ref": "a", "on_failure": "explode"}, "jobs[0].depends_on[0].on_failure"),
        ({"job_id": "x"}, "jobs[0].depends_on[0].job_id"),
        ({"ref": "a", "job_id": "x"}, "jobs[0].depends_on[0]"),
        ({"ref": ""}, "jobs[0].depends_on[0].ref"),
    ],
)
def test_what_a_job_can_not_wait_for_is_named(as_member, queue, wanted, field):
    answer = as_member.post("jobs/bulk", {"jobs": [_item(queue, ref="x", depends_on=[wanted])]})

    assert (answer.status_code, field_of(answer)) == (400, field)


def test_a_graph_can_not_be_submitted_in_parts(as_member, queue):
    answer = as_member.post("jobs/bulk", {"jobs": [_item(queue, ref="a")], "atomic": False})

    assert (answer.status_code, field_of(answer)) == (400, "atomic")


def test_jobs_can_wait_for_jobs_that_exist(as_member, queue):
    parent, other = make_job(queue), make_queue(queue.project)

    many = as_member.post("jobs/bulk", {"jobs": [_item(other, depends_on=[str(parent.pk)])]}).json()["results"]
    one = as_member.post("jobs", _item(queue, depends_on=[{"job_id": str(parent.pk), "on_failure": "wait"}])).json()

    assert many[0]["job_status"] == one["status"] == "scheduled"
    assert JobDependency.objects.filter(depends_on_job=parent).count() == 2


def test_jobs_of_others_can_not_be_waited_for_and_look_unknown(as_member, queue):
    foreign, unknown = str(make_job(make_queue()).pk), "0193a5d0-0000-7000-8000-000000000000"

    for path, body in (
        ("jobs", lambda id_: _item(queue, depends_on=[id_])),
        ("jobs/bulk", lambda id_: {"jobs": [_item(queue, depends_on=[id_])]}),
    ):
        answers = [as_member.post(path, body(id_)) for id_ in (foreign, unknown)]
        assert [answer.status_code for answer in answers] == [400, 400]
        assert answers[0].content == answers[1].content
        assert field_of(answers[0]).endswith("depends_on[0]")


def test_queues_can_be_named_by_their_paths(as_member, as_machine, queue):
    _, project, name = path_of(queue).split("/")

    full = as_member.post("jobs/bulk", {"jobs": [{"queue": path_of(queue), "job_type": "noop"}] * 2})
    short = as_machine.post(
        "jobs/bulk", {"jobs": [{"queue": name, "job_type": "noop"}, {"queue": f"{project}/{name}", "job_type": "noop"}]}
    )
    unknown = as_machine.post("jobs/bulk", {"jobs": [{"queue": "nowhere", "job_type": "noop"}]})
    incomplete = as_member.post("jobs/bulk", {"jobs": [{"queue": name, "job_type": "noop"}]})

    assert (full.status_code, short.status_code, unknown.status_code) == (201, 201, 404)
    assert (incomplete.status_code, field_of(incomplete)) == (400, "jobs[0].queue")
    assert Job.objects.filter(queue=queue).count() == 4


def test_queues_of_two_projects_do_not_mix(as_owner, organization, queue):
    elsewhere = make_queue(make_project(organization))

    answer = as_owner.post("jobs/bulk", {"jobs": [_item(queue), _item(elsewhere)]})

    assert (answer.status_code, field_of(answer)) == (400, "jobs[1].queue_id")


def test_a_read_only_key_submits_nothing(queue):
    reader = Api(key=make_key(queue.project, ApiKey.Scope.READ))

    assert reader.post("jobs/bulk", {"jobs": [_item(queue)]}).status_code == 403
