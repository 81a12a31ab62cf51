"""ETags: 304 for what is known, 412 for what has changed since it was read."""

from __future__ import annotations

import pytest

from jobs.services.schedules import create_schedule
from queues.services import create_retry_policy
from tests.factories import make_job


@pytest.fixture(params=["queues", "retry-policies", "scheduled-jobs"])
def place(request, queue) -> tuple[str, str, str]:
    """The path of an object, and two changes of it."""
    if request.param == "queues":
        return f"queues/{queue.pk}", '{"priority": 1}', '{"priority": 2}'
    if request.param == "retry-policies":
        policy = create_retry_policy(queue.project, name="p")
        return f"retry-policies/{policy.pk}", '{"max_attempts": 3}', '{"max_attempts": 4}'
    schedule = create_schedule(queue, name="s", cron_expression="0 3 * * *", job_type="noop")
    return f"scheduled-jobs/{schedule.pk}", '{"jitter_secs": 1}', '{"jitter_secs": 2}'


def test_what_is_known_is_not_sent_again(as_owner, place):
    path, change, _ = place
    tag = as_owner.get(path)["ETag"]

    known = as_owner.send("get", path, If_None_Match=tag)
    as_owner.send("patch", path, change)
    news = as_owner.send("get", path, If_None_Match=tag)

    assert tag.startswith('W/"')
    assert (known.status_code, known.content, known["ETag"]) == (304, b"", tag)
    assert news.status_code == 200
    assert news["ETag"] != tag


def test_of_two_who_change_the_same_version_one_is_told(as_owner, place):
    path, first, second = place
    tag = as_owner.get(path)["ETag"]

    won = as_owner.send("patch", path, first, If_Match=tag)
    lost = as_owner.send("patch", path, second, If_Match=tag)
    again = as_owner.send("patch", path, second, If_Match=won["ETag"])

    assert (won.status_code, lost.status_code, again.status_code) == (200, 412, 200)
    assert lost.json()["error"] == "conflict"
    assert {detail["field"] for detail in lost.json()["details"]} >= {"name"}
    assert as_owner.get(path)["ETag"] == again["ETag"]


@pytest.mark.parametrize("given", ["*", None])
def test_without_a_version_anything_goes(as_owner, place, given):
    path, change, _ = place

    answer = as_owner.send("patch", path, change, **({"If_Match": given} if given else {}))

    assert answer.status_code == 200


@pytest.mark.parametrize("given", ["x", '"x"', 'W/"x.y"', ",", '""'])
def test_a_version_that_never_was_is_stale(as_owner, place, given):
    path, change, _ = place

    assert as_owner.send("patch", path, change, If_Match=given).status_code == 412


def test_work_in_a_queue_is_news_but_no_change_of_it(as_owner, queue):
    before = as_owner.get(f"queues/{queue.pk}")["ETag"]
    make_job(queue)

    assert as_owner.send("get", f"queues/{queue.pk}", If_None_Match=before).status_code == 200
    assert as_owner.send("patch", f"queues/{queue.pk}", '{"priority": 1}', If_Match=before).status_code == 200


def test_deleting_honours_it_too(as_owner, queue):
    tag = as_owner.get(f"queues/{queue.pk}")["ETag"]
    as_owner.post(f"queues/{queue.pk}/pause")

    assert as_owner.send("delete", f"queues/{queue.pk}", If_Match=tag).status_code == 412
    assert as_owner.delete(f"queues/{queue.pk}").status_code == 204


def test_changes_check_their_fields(as_owner, queue):
    policy = create_retry_policy(queue.project, name="p")
    for path, body in [
        (f"queues/{queue.pk}", '{"project_id": "0193a5d0-0000-7000-8000-000000000000"}'),
        (f"queues/{queue.pk}", '{"priority": true}'),
        (f"queues/{queue.pk}", '{"rate_limit": 5}'),
        (f"retry-policies/{policy.pk}", '{"max_attempts": 0}'),
        (f"retry-policies/{policy.pk}", '{"strategy": "never"}'),
        (f"retry-policies/{policy.pk}", '{"name": ""}'),
    ]:
        assert as_owner.send("patch", path, body).status_code == 400, body


def test_a_partial_change_leaves_the_rest(as_owner, queue):
    policy = create_retry_policy(queue.project, name="p", jitter=False, max_attempts=7)

    answer = as_owner.send("patch", f"retry-policies/{policy.pk}", '{"base_delay_ms": 5}').json()

    assert (answer["base_delay_ms"], answer["jitter"], answer["max_attempts"]) == (5, False, 7)
    twin = create_retry_policy(queue.project, name="q")
    assert as_owner.send("patch", f"retry-policies/{twin.pk}", '{"name": "p"}').status_code == 409
