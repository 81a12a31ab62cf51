"""Jobs through the API: submit, list, look at, cancel."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from jobs.decisions import Succeeded
from jobs.lease import Ending
from jobs.lifecycle.expire import expire_late
from jobs.lifecycle.settle import settle
from jobs.models import Job
from orgs.models import ApiKey
from queues.services import create_retry_policy
from tests.factories import claim_one, make_job, make_jobs, make_project, make_queue, path_of
from tests.personas import Api, all_items, field_of, make_key


def _submit(api: Api, queue, **fields):
    return api.post("jobs", {"queue_id": str(queue.pk), "job_type": "test.echo", **fields})


def test_a_submitted_job_can_be_read_back(as_member, queue):
    payload = {"n": 12345678901234567890123, "t": "\u00e9\U0001f600", "f": 0.1, "l": [None, True, {}]}

    answer = _submit(as_member, queue, payload=payload, priority=7, trace_id="t-1", max_attempts=3)

    assert answer.status_code == 201
    receipt = answer.json()
    assert (receipt["status"], receipt["attempt"], receipt["queue_id"]) == ("queued", 0, str(queue.pk))
    assert answer["Location"] == f"/api/jobs/{receipt['id']}"
    job = as_member.get(f"jobs/{receipt['id']}").json()
    assert job["payload"] == payload
    assert (job["priority"], job["trace_id"], job["max_attempts"], job["attempt"]) == (7, "t-1", 3, 0)
    assert job["result"] is None
    assert "lease_token" not in job


def test_the_answer_says_nothing_that_reading_the_job_would_not(as_member, queue):
    receipt = _submit(as_member, queue, run_at="2100-01-01T01:00:00+02:00").json()

    job = as_member.get(f"jobs/{receipt['id']}").json()
    assert receipt == {name: job[name] for name in receipt}
    assert receipt["run_at"] == "2099-12-31T23:00:00Z"
    assert receipt["status"] == "scheduled"


def test_a_queue_can_be_named_by_its_path(as_member, as_machine, queue):
    organization, project, name = path_of(queue).split("/")

    assert as_member.post("jobs", {"queue": path_of(queue), "job_type": "noop"}).status_code == 201
    for path in (name, f"{project}/{name}", f"{organization}/{project}/{name}"):
        assert as_machine.post("jobs", {"queue": path, "job_type": "noop"}).status_code == 201, path
    short = as_member.post("jobs", {"queue": name, "job_type": "noop"})
    assert (short.status_code, field_of(short)) == (400, "queue")


@pytest.mark.parametrize("path", ["a/b/c", "a//c", "/", "a/b/c/d", "no-such-queue", "\u0000", " "])
def test_a_path_to_nowhere_is_a_404_or_a_400(as_machine, path):
    answer = as_machine.post("jobs", {"queue": path, "job_type": "noop"})

    assert answer.status_code == (400 if path in {"\u0000", " "} else 404)


def test_queue_and_queue_id_together_or_neither_are_refused(as_member, queue):
    both = as_member.post("jobs", {"queue": path_of(queue), "queue_id": str(queue.pk), "job_type": "noop"})
    neither = as_member.post("jobs", {"job_type": "noop"})

    assert both.status_code == neither.status_code == 400
    assert field_of(both) == field_of(neither) == "queue_id"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queue_id", 1),
        ("queue_id", "1"),
        ("queue_id", "{01890a5d-ac96-774b-bcce-b302099a8057}"),
        ("job_type", 5),
        ("job_type", ""),
        ("job_type", "a b"),
        ("job_type", "x" * 201),
        ("job_type", "a\u0000"),
        ("job_type", "\ud83d"),
        ("job_type", ["noop"]),
        ("payload", "a\u0000b"),
        ("payload", {"\ud83d": 1}),
        ("payload", "x" * 1_048_577),
        ("priority", True),
        ("priority", 1.0),
        ("priority", "1"),
        ("priority", 10_001),
        pytest.param("priority", 10**4_000, id="huge"),
        ("run_at", 1_767_225_600),
        ("run_at", "2026-12-24T02:30:00"),
        ("run_at", "2026-12-24"),
        ("run_at", "9999-12-31T23:59:59-01:00"),
        ("run_at", "0001-01-01T00:00:00+01:00"),
        ("run_at", "2026-02-30T00:00:00Z"),
        ("run_at", "\u0662026-12-24T02:30:00Z"),
        ("run_at", "2026-12-24T02:30:00Z\n"),
        ("delay_s", "5"),
        ("delay_s", True),
        ("delay_s", -1),
        ("delay_s", 1e12),
        pytest.param("delay_s", 10**400, id="huge-delay"),
        ("idempotency_key", ""),
        ("idempotency_key", "k" * 256),
        ("idempotency_key", "a\tb"),
        ("retry_policy_id", "x"),
        ("retry_policy_id", "01890a5d-ac96-774b-bcce-b302099a8057"),
        ("max_attempts", 0),
        ("max_attempts", 1_001),
        ("max_attempts", "\u0663"),
        ("trace_id", "x" * 65),
        ("status", "completed"),
        ("locked_by", None),
    ],
)
def test_bad_fields_are_named(as_member, queue, field, value):
    answer = _submit(as_member, queue, **{field: value})

    assert answer.status_code == 400, answer.content
    assert answer.json()["error"] == "validation_error"
    assert field_of(answer) == field
    assert not Job.objects.exists()


def test_payloads_nested_too_deep_are_refused_by_name(as_member, queue):
    nested: object = 1
    for _ in range(100):
        nested = [nested]

    answer = _submit(as_member, queue, payload=nested)

    assert (answer.status_code, field_of(answer)) == (400, "payload")


@pytest.mark.parametrize("payload", [None, 0, "", False, [], 1e300 / 3, -0.0, {"a": {}}])
def test_any_json_is_a_payload(as_member, queue, payload):
    receipt = _submit(as_member, queue, payload=payload).json()

    # A number without a fraction comes back as one; as floats, which is how JSON means them, the two are the same.
    found = as_member.get(f"jobs/{receipt['id']}").json()["payload"]
    assert (float(found) if isinstance(payload, float) else found) == payload


def test_a_delay_makes_a_job_scheduled(as_member, queue):
    receipt = _submit(as_member, queue, delay_s=60).json()

    assert receipt["status"] == "scheduled"
    due = datetime.fromisoformat(as_member.get(f"jobs/{receipt['id']}").json()["run_at"])
    assert timedelta(seconds=50) < due - datetime.now(UTC) < timedelta(seconds=70)
    both = _submit(as_member, queue, delay_s=60, run_at="2100-01-01T00:00:00Z")
    assert (both.status_code, field_of(both)) == (400, "run_at")


def test_the_same_key_returns_the_first_job(as_member, queue):
    fields = {"payload": {"a": 1, "b": 1e308}, "idempotency_key": "k1"}

    first, again = _submit(as_member, queue, **fields), _submit(as_member, queue, **fields)
    reordered = _submit(as_member, queue, payload={"b": 1e308, "a": 1}, idempotency_key="k1")

    assert (first.status_code, again.status_code, reordered.status_code) == (201, 200, 200)
    assert first.json()["id"] == again.json()["id"] == reordered.json()["id"]
    assert set(first.json()) == set(again.json())
    assert Job.objects.count() == 1


def test_the_header_is_the_default_of_the_key(as_member, queue):
    first = as_member.post("jobs", {"queue_id": str(queue.pk), "job_type": "noop"}, Idempotency_Key="h1")
    again = _submit(as_member, queue, idempotency_key="h1", job_type="noop")
    other = as_member.post(
        "jobs", {"queue_id": str(queue.pk), "job_type": "noop", "idempotency_key": "h2"}, Idempotency_Key="h1"
    )

    assert first.json()["idempotency_key"] == "h1"
    assert again.json()["id"] == first.json()["id"]
    assert other.json()["id"] != first.json()["id"]


@pytest.mark.parametrize("change", [{"payload": {"a": 2}}, {"job_type": "noop"}])
def test_a_key_can_not_stand_for_other_work(as_member, queue, change):
    _submit(as_member, queue, payload={"a": 1}, idempotency_key="k1")

    answer = _submit(as_member, queue, **{"payload": {"a": 1}, "idempotency_key": "k1", **change})

    assert (answer.status_code, field_of(answer)) == (409, "idempotency_key")
    assert Job.objects.count() == 1


def test_attempts_come_from_the_job_its_policy_its_queue_or_the_default(as_owner, project):
    own = create_retry_policy(project, name="own", max_attempts=7)
    of_queue = create_retry_policy(project, name="queue", max_attempts=9)
    plain, with_policy = make_queue(project), make_queue(project, default_retry_policy=of_queue)

    def attempts(queue, **fields):
        return as_owner.get(f"jobs/{_submit(as_owner, queue, **fields).json()['id']}").json()["max_attempts"]

    assert attempts(plain) == 5
    assert attempts(with_policy) == 9
    assert attempts(with_policy, retry_policy_id=str(own.pk)) == 7
    assert attempts(with_policy, retry_policy_id=str(own.pk), max_attempts=2) == 2


def test_another_projects_policy_is_refused(as_member, queue):
    foreign = create_retry_policy(make_project(queue.project.organization), name="p")

    answer = _submit(as_member, queue, retry_policy_id=str(foreign.pk))

    assert (answer.status_code, field_of(answer)) == (400, "retry_policy_id")


def test_the_list_is_newest_first_complete_and_without_payloads(as_member, queue):
    made = [str(job.id) for job in make_jobs(queue, 30, payload={"secret": 1})]

    items = all_items(as_member, "jobs", 7)

    assert [item["id"] for item in items] == sorted(made, reverse=True)
    assert all("payload" not in item and "result" not in item for item in items)


def test_the_list_has_filters(as_member, queue, project):
    other = make_queue(project)
    make_job(queue, "a.one")
    make_job(queue, "a.two", delay_s=60)
    make_job(other, "a.one")

    def found(**query):
        return sorted(item["job_type"] for item in as_member.get("jobs", **query).json()["items"])

    assert found() == ["a.one", "a.one", "a.two"]
    assert found(queue_id=queue.pk) == ["a.one", "a.two"]
    assert found(queue_id=queue.pk, status="scheduled") == ["a.two"]
    assert found(queue_id=queue.pk, job_type="a.one", status="queued") == ["a.one"]
    assert found(status="running") == []
    assert as_member.get("jobs", status="pending").status_code == 400


def test_a_waiting_job_is_cancelled(as_member, queue):
    job = make_job(queue)

    answer = as_member.post(f"jobs/{job.pk}/cancel", {"reason": "not needed"})

    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    job.refresh_from_db()
    assert (job.status, job.error_message) == ("cancelled", "not needed")


def test_a_running_job_is_asked_to_stop(as_member, queue):
    job = make_job(queue)
    claim_one(queue)

    answer = as_member.send("post", f"jobs/{job.pk}/cancel")

    assert answer.status_code == 202
    assert answer.json() == {"id": str(job.pk), "status": "running", "cancel_requested": True}
    assert as_member.get(f"jobs/{job.pk}").json()["cancel_requested_at"]


def test_an_ended_job_can_not_be_cancelled(as_member, queue):
    job = make_job(queue)
    settle([Ending.of(claim_one(queue), Succeeded('{"ok": 1}'), str(job.pk))])
    before = as_member.get(f"jobs/{job.pk}").json()

    answer = as_member.post(f"jobs/{job.pk}/cancel")

    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert as_member.get(f"jobs/{job.pk}").json() == before
    assert before["result"] == {"ok": 1}


def test_the_number_of_the_running_attempt_counts(as_member, queue):
    job = make_job(queue)
    claim_one(queue)

    assert as_member.get(f"jobs/{job.pk}").json()["attempt"] == 1


def test_a_machines_submission_costs_two_statements_or_three(project, queue, django_assert_num_queries):
    api = Api(key=make_key(project, ApiKey.Scope.SUBMIT))

    with django_assert_num_queries(2):
        _submit(api, queue, payload={"a": 1}, idempotency_key="k", priority=3)
    with django_assert_num_queries(2):
        api.post("jobs", {"queue": queue.name, "job_type": "noop"})
    with django_assert_num_queries(3):
        _submit(api, queue, payload={"a": 1}, max_attempts=2)
    with django_assert_num_queries(3):
        api.post("jobs", {"queue": path_of(queue), "job_type": "noop"})


def test_what_is_wrong_is_found_in_one_order_however_a_job_is_submitted(project, queue):
    api, reader = Api(key=make_key(project, ApiKey.Scope.SUBMIT)), Api(key=make_key(project, ApiKey.Scope.READ))
    foreign = make_queue(make_project(project.organization))
    too_deep = {"payload": json.loads("[" * 70 + "]" * 70)}

    for more in ({}, {"idempotency_key": "k"}):
        assert _submit(api, foreign, **more, **too_deep).status_code == 404
        assert _submit(reader, foreign, **more, **too_deep).status_code == 404
        assert _submit(reader, queue, **more, **too_deep).status_code == 403
        assert (_submit(api, queue, **more, **too_deep).status_code, Job.objects.count()) == (400, 0)


def test_lists_cost_the_same_however_long_they_are(as_member, queue, django_assert_num_queries):
    make_jobs(queue, 60)

    for limit in (1, 50):
        with django_assert_num_queries(4):  # who, which queues, the ids, their rows
            as_member.get("jobs", limit=limit)
    with django_assert_num_queries(4):  # who, the queue, the ids, their rows
        as_member.get("jobs", queue_id=queue.pk)


def test_a_node_is_cancelled_and_retried_with_all_that_waits_for_it(as_machine, queue):
    graph = [
        {"queue_id": str(queue.pk), "job_type": "noop", "ref": "a"},
        {"queue_id": str(queue.pk), "job_type": "noop", "ref": "b", "depends_on": [{"ref": "a", "on_failure": "wait"}]},
    ]
    made = as_machine.post("jobs/bulk", {"jobs": graph}).json()
    first, second = [result["id"] for result in made["results"]]

    cancelled = as_machine.post(f"jobs/{first}/cancel", {"with_downstream": True})
    again = as_machine.post(f"jobs/{first}/cancel", {"with_downstream": True})
    statuses = [as_machine.get(f"jobs/{id_}").json()["status"] for id_ in (first, second)]
    retried = as_machine.post(f"jobs/{first}/retry", {"with_downstream": True})

    assert (cancelled.status_code, again.status_code, retried.status_code) == (200, 409, 200)
    assert statuses == ["cancelled", "cancelled"]
    assert [as_machine.get(f"jobs/{id_}").json()["status"] for id_ in (first, second)] == ["queued", "scheduled"]


def test_deadlines_are_taken_shown_and_refused_by_their_names(as_member, queue):
    given = {"start_deadline": "2100-01-01T00:00:00Z", "deadline": "2100-01-01T01:00:00Z"}

    job = as_member.get(f"jobs/{_submit(as_member, queue, **given).json()['id']}").json()

    assert {name: job[name] for name in given} == given
    for name in given:
        for wrong in ("tomorrow", 7, "2100-01-01T00:00:00"):
            answer = _submit(as_member, queue, **{name: wrong})
            assert (answer.status_code, field_of(answer)) == (400, name)
        answer = _submit(as_member, queue, run_at="2100-01-02T00:00:00Z", **{name: given[name]})
        assert (answer.status_code, field_of(answer)) == (400, name)


def test_a_job_that_is_too_late_says_so(as_member, queue):
    job_id = _submit(as_member, queue, deadline="2020-01-01T00:00:00Z").json()["id"]

    waiting = as_member.get(f"jobs/{job_id}/explain").json()["reasons"]
    expire_late(limit=10)
    ended = as_member.get(f"jobs/{job_id}/explain").json()["reasons"]

    assert waiting[0]["code"] == "deadline_passed"
    assert "deadline passed" in ended[0]["message"]
    assert as_member.get(f"jobs/{job_id}").json()["error_message"] == "deadline passed"
