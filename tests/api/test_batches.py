"""Batches through the API."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.decisions import Failed, Succeeded
from jobs.models import Job
from jobs.services.batches import fold_batches
from tests.factories import claim_one, end, make_project, make_queue
from tests.personas import field_of


def _item(queue, **fields: Any) -> dict[str, Any]:
    return {"queue_id": str(queue.pk), "job_type": "noop", **fields}


def test_a_batch_with_its_jobs_is_closed_and_counts_them(as_machine, queue):
    other = make_queue(queue.project)

    answer = as_machine.post("batches", {"name": "b", "jobs": [_item(queue), _item(other), _item(queue)]})
    body = answer.json()
    end(claim_one(queue), Succeeded())
    end(claim_one(other), Failed("no"))

    assert (answer.status_code, body["status"], body["total_jobs"], body["progress"]) == (201, "running", 3, 0.0)
    assert [result["status"] for result in body["results"]] == [201, 201, 201]
    now = as_machine.get(f"batches/{body['id']}").json()
    assert (now["completed_jobs"], now["pending_jobs"], now["total_jobs"]) == (1, 2, 3)
    end(claim_one(queue), Succeeded())
    assert as_machine.get("batches").json()["items"][0]["completed_jobs"] == 2


def test_a_batch_can_be_filled_and_closed(as_machine, queue):
    batch = as_machine.post("batches", {"name": "b"}).json()
    path = f"batches/{batch['id']}"

    added = as_machine.post(f"{path}/jobs", {"jobs": [_item(queue)] * 2})
    closed = as_machine.post(f"{path}/close").json()
    late = as_machine.post(f"{path}/jobs", {"jobs": [_item(queue)]})

    assert (batch["status"], batch["progress"]) == ("open", None)
    assert (added.status_code, len(added.json()["results"])) == (201, 2)
    assert (closed["status"], closed["total_jobs"]) == ("running", 2)
    assert late.status_code == 409
    assert Job.objects.filter(batch_id=batch["id"]).count() == 2


def test_cancelling_ends_what_has_not_ended(as_machine, queue):
    batch = as_machine.post("batches", {"name": "b", "jobs": [_item(queue)] * 3}).json()

    answer = as_machine.post(f"batches/{batch['id']}/cancel")
    fold_batches()

    assert (answer.status_code, answer.json()["cancelled_jobs"]) == (202, 3)
    assert as_machine.get(f"batches/{batch['id']}").json()["status"] == "cancelled"
    assert as_machine.post(f"batches/{batch['id']}/cancel").status_code == 409


def test_callbacks_are_checked_when_they_are_given(as_machine, queue):
    good = {"queue_id": str(queue.pk), "job_type": "noop", "payload": {"a": 1}}
    bad = [
        ({**good, "queue_id": str(make_queue().pk)}, "on_end.queue_id"),
        ({**good, "payload": {"x": "\u0000"}}, "on_end.payload"),
        ({**good, "payload": [1]}, "on_end.payload"),
        ({**good, "job_type": "a b"}, "on_end.job_type"),
        ({**good, "x": 1}, "on_end.x"),
    ]

    assert as_machine.post("batches", {"name": "b", "on_end": good}).status_code == 201
    for callback, field in bad:
        answer = as_machine.post("batches", {"name": "b", "on_end": callback})
        assert (answer.status_code, field_of(answer)) == (400, field)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"idempotency_key": "k"}, "idempotency_key"), ({"ref": "a"}, "ref"), ({"max_attempts": 0}, "max_attempts")],
)
def test_a_bad_job_leaves_no_batch_behind(as_machine, queue, change, field):
    answer = as_machine.post("batches", {"name": "b", "jobs": [_item(queue), _item(queue, **change)]})

    assert (answer.status_code, field_of(answer)) == (400, f"jobs[1].{field}")
    assert as_machine.get("batches").json()["items"] == []
    assert not Job.objects.exists()


def test_jobs_of_a_batch_stay_in_its_project(as_owner, organization, queue):
    elsewhere = make_queue(make_project(organization))

    answer = as_owner.post("batches", {"name": "b", "project_id": str(queue.project_id), "jobs": [_item(elsewhere)]})

    assert (answer.status_code, field_of(answer)) == (400, "jobs[0].queue_id")


def test_a_parent_of_others_looks_unknown(as_machine, as_outsider, queue):
    foreign = make_project()
    from jobs.services.batches import create_batch

    batch = create_batch(foreign.pk, "theirs")

    answer = as_machine.post("batches", {"name": "b", "parent_id": str(batch.pk)})

    assert (answer.status_code, field_of(answer)) == (400, "parent_id")
