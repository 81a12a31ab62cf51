"""The audit log: every deed with its author, its object and what it changed; no secrets, nothing without the deed."""

from __future__ import annotations

import json

import pytest

from orgs.models import AuditEntry
from tests.factories import job_in, make_job
from tests.personas import field_of, make_user


def _log(as_owner, organization, **query):
    return as_owner.get("audit", org_id=organization.pk, **query).json()["items"]


def test_an_entry_says_who_did_what_and_what_it_changed(as_owner, owner, organization, queue):
    as_owner.headers["X-Request-Id"] = "req-1"
    as_owner.post(f"queues/{queue.pk}/pause", {"reason": "migration"})

    [entry] = _log(as_owner, organization)
    assert (entry["action"], entry["target_type"], entry["target_id"]) == ("queue.pause", "queue", str(queue.pk))
    assert (entry["user_id"], entry["user_email"], entry["api_key_id"]) == (str(owner.pk), owner.email, None)
    assert entry["before"] == {"is_paused": False, "paused_reason": ""}
    assert entry["after"] == {"is_paused": True, "paused_reason": "migration"}
    assert (entry["request_id"], entry["project_id"]) == ("req-1", str(queue.project_id))


def test_machines_are_named_by_their_key(as_owner, as_machine, organization, queue):
    job = make_job(queue)
    as_machine.post(f"jobs/{job.pk}/cancel", {"reason": "no"})

    [entry] = _log(as_owner, organization, target_type="job", target_id=str(job.pk))
    assert (entry["user_id"], entry["api_key_name"]) == (None, entry["api_key_name"])
    assert entry["api_key_name"].startswith("key ")
    assert entry["before"] == {"status": "queued"}
    assert entry["after"] == {"status": "cancelled", "reason": "no", "with_downstream": False}


def test_every_change_leaves_an_entry(as_owner, organization, project, queue):
    letter_job = job_in("dead_letter", queue).job
    schedule = {"queue_id": str(queue.pk), "name": "s", "cron_expression": "0 3 * * *", "job_type": "noop"}
    schedule_id = as_owner.post("scheduled-jobs", schedule).json()["id"]
    member = as_owner.post(
        f"organizations/{organization.pk}/members", {"email": make_user().email, "role": "viewer"}
    ).json()
    key = as_owner.post(f"projects/{project.pk}/api-keys", {"name": "k"}).json()
    batch = as_owner.post("batches", {"name": "b", "project_id": str(project.pk)}).json()
    policy = as_owner.post("retry-policies", {"name": "p", "project_id": str(project.pk)}).json()
    sent = [
        ("patch", f"queues/{queue.pk}", {"priority": 3}, "queue.update"),
        ("post", f"queues/{queue.pk}/resume", {}, "queue.resume"),
        ("patch", f"retry-policies/{policy['id']}", {"max_attempts": 9}, "retry_policy.update"),
        ("delete", f"retry-policies/{policy['id']}", {}, "retry_policy.delete"),
        ("patch", f"scheduled-jobs/{schedule_id}", {"jitter_secs": 1}, "scheduled_job.update"),
        ("post", f"scheduled-jobs/{schedule_id}/pause", {}, "scheduled_job.pause"),
        ("post", f"scheduled-jobs/{schedule_id}/trigger", {}, "scheduled_job.trigger"),
        ("post", f"scheduled-jobs/{schedule_id}/deactivate", {}, "scheduled_job.deactivate"),
        ("post", f"jobs/{letter_job.pk}/retry", {}, "job.retry"),
        ("post", "jobs/bulk", {"jobs": [{"queue_id": str(queue.pk), "job_type": "noop"}]}, "job.submit_bulk"),
        ("post", f"batches/{batch['id']}/close", {}, "batch.close"),
        ("post", "operations", {"action": "cancel", "filter": {}, "project_id": str(project.pk)}, "operation.create"),
        ("patch", f"organizations/{organization.pk}/members/{member['id']}", {"role": "admin"}, "member.change_role"),
        ("delete", f"organizations/{organization.pk}/members/{member['id']}", {}, "member.remove"),
        ("post", f"projects/{project.pk}/api-keys/{key['id']}/rotate", {"overlap_secs": 5}, "api_key.rotate"),
        ("delete", f"projects/{project.pk}/api-keys/{key['id']}", {}, "api_key.revoke"),
    ]
    for method, path, body, action in sent:
        before = AuditEntry.objects.count()
        answer = as_owner.send(method, path, json.dumps(body))
        assert answer.status_code < 300, (path, answer.content)
        assert AuditEntry.objects.count() == before + 1, path
        assert _log(as_owner, organization)[0]["action"] == action
    made = {"scheduled_job.create", "member.add", "api_key.create", "batch.create", "retry_policy.create"}
    assert made <= set(AuditEntry.objects.values_list("action", flat=True))


def test_what_is_refused_leaves_none(as_owner, as_viewer, queue):
    as_viewer.post(f"queues/{queue.pk}/pause")
    as_owner.send("patch", f"queues/{queue.pk}", '{"priority": 99999}')
    as_owner.post(f"jobs/{job_in('completed', queue).job.pk}/cancel")

    assert not AuditEntry.objects.exists()


def test_no_secret_and_no_payload_is_in_it(as_owner, organization, project, queue):
    key = as_owner.post(f"projects/{project.pk}/api-keys", {"name": "k"}).json()["api_key"]
    as_owner.post(
        "scheduled-jobs",
        {
            "queue_id": str(queue.pk),
            "name": "s",
            "cron_expression": "0 3 * * *",
            "job_type": "noop",
            "payload_template": {"card": "4111-1111"},
        },
    )

    text = json.dumps(list(AuditEntry.objects.values("before", "after")))
    assert key not in text
    assert "hash" not in text
    assert "4111" not in text
    assert "sha256:" in text


def test_a_new_password_is_in_the_log_of_each_organization(as_owner, owner, organization):
    owner.set_password("correct horse battery")
    owner.save()
    from tests.personas import Api

    answer = Api(owner).post(
        "auth/password", {"old_password": "correct horse battery", "new_password": "another good one"}
    )

    entry = AuditEntry.objects.get()
    assert answer.status_code == 200
    assert (entry.action, entry.target_id, entry.organization_id) == (
        "user.change_password",
        str(owner.pk),
        organization.pk,
    )


def test_the_entry_falls_with_the_deed(as_owner, queue, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("orgs.audit.record", broken)
    assert as_owner.post(f"queues/{queue.pk}/pause").status_code == 500

    queue.refresh_from_db()
    assert queue.is_paused is False


def test_the_log_has_filters_and_pages(as_owner, organization, queue):
    for action in ("pause", "resume", "pause"):
        as_owner.post(f"queues/{queue.pk}/{action}")

    first = as_owner.get("audit", org_id=organization.pk, limit=2).json()
    rest = as_owner.get("audit", org_id=organization.pk, limit=2, cursor=first["next_cursor"]).json()
    assert [entry["action"] for entry in first["items"] + rest["items"]] == [
        "queue.pause",
        "queue.resume",
        "queue.pause",
    ]
    assert rest["next_cursor"] is None
    assert _log(as_owner, organization, target_type="job") == []
    bad = as_owner.get("audit", org_id=organization.pk, target_id="x")
    assert (bad.status_code, field_of(bad)) == (400, "target_type")


@pytest.mark.parametrize("query", [{}, {"org_id": "x"}])
def test_the_organization_is_needed(as_owner, query):
    answer = as_owner.get("audit", **query)

    assert (answer.status_code, field_of(answer)) == (400, "org_id")
