"""Alert rules, alerts and event subscriptions over REST; who may is in tests/access."""

from __future__ import annotations

import json

import pytest

from jobs.models import Alert, AlertRule, EventSubscription
from jobs.services.alert_rules import create_rule
from scheduler_project.lib.sql import database_now
from tests.factories import make_queue
from tests.personas import field_of

URL = "https://hooks.example.com/in"
RULE = {"name": "Late", "kind": "oldest_age", "threshold": 60}
HOOK = {"name": "Chat", "url": URL, "types": ["job.failed"]}


def test_a_rule_is_made_changed_listed_and_deleted(as_machine, queue):
    made = as_machine.post("alert-rules", {**RULE, "queue_id": str(queue.pk), "emails": ["a@example.com"]})
    assert made.status_code == 201
    path = f"alert-rules/{made.json()['id']}"
    assert as_machine.get(path).json() == made.json()

    tag = made.headers["ETag"]
    changed = as_machine.send("PATCH", path, json.dumps({"threshold": 90, "is_enabled": False}), If_Match=tag)
    assert (changed.json()["threshold"], changed.json()["is_enabled"]) == (90, False)
    assert changed.json()["emails"] == ["a@example.com"]
    assert as_machine.send("PATCH", path, json.dumps({"threshold": 1}), If_Match=tag).status_code == 412

    assert [one["id"] for one in as_machine.get("alert-rules").json()["items"]] == [made.json()["id"]]
    assert as_machine.delete(path).status_code == 204
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "weather"}, "kind"),
        ({"threshold": 0}, "threshold"),
        ({"kind": "failure_rate", "threshold": 101}, "threshold"),
        ({"window_secs": 59}, "window_secs"),
        ({"for_secs": -1}, "for_secs"),
        ({"min_attempts": 0}, "min_attempts"),
        ({"webhook_url": "http://127.0.0.1/"}, "webhook_url"),
        ({"emails": ["nobody"]}, "emails[0]"),
        ({"kind": "no_leader", "queue_id": "QUEUE"}, "queue_id"),
        ({"queue_id": "FOREIGN"}, "queue_id"),
        ({"name": ""}, "name"),
    ],
)
def test_a_bad_field_is_named(as_machine, queue, change, field):
    ids = {"QUEUE": str(queue.pk), "FOREIGN": str(make_queue().pk)}
    sent = {name: ids.get(value, value) if isinstance(value, str) else value for name, value in change.items()}

    answer = as_machine.post("alert-rules", {**RULE, **sent})

    assert answer.status_code == 400
    assert field_of(answer) == field


def test_a_name_is_taken_once(as_machine):
    assert as_machine.post("alert-rules", RULE).status_code == 201
    assert as_machine.post("alert-rules", RULE).status_code == 409


def test_rules_of_the_whole_organization_are_for_people(as_machine, as_owner, project):
    wide = {**RULE, "scope": "organization"}
    assert as_machine.post("alert-rules", wide).status_code == 403
    made = as_owner.post("alert-rules", {**wide, "project_id": str(project.pk)})
    assert made.status_code == 201

    path = f"alert-rules/{made.json()['id']}"
    assert as_machine.send("PATCH", path, json.dumps({"threshold": 1})).status_code == 403
    assert as_machine.delete(path).status_code == 403


def test_the_history_is_filtered(as_machine, project):
    for state in ("firing", "resolved"):
        rule = create_rule(project, by=None, name=state, kind="no_leader", threshold=1)
        at = database_now()
        Alert.objects.create(
            project=project, rule_id=rule.pk, rule_name=state, kind="no_leader", threshold=1, value=20, state=state,
            fired_at=at, resolved_at=at if state == "resolved" else None,
        )  # fmt: skip

    assert [one["rule_name"] for one in as_machine.get("alerts").json()["items"]] == ["resolved", "firing"]
    [firing] = as_machine.get("alerts", state="firing").json()["items"]
    assert firing["rule_name"] == "firing"
    assert as_machine.get(f"alerts/{firing['id']}").json() == firing
    [of_rule] = as_machine.get("alerts", rule_id=firing["rule_id"]).json()["items"]
    assert of_rule == firing


def test_a_subscription_is_made_tried_changed_and_deleted(as_machine, project):
    made = as_machine.post("event-subscriptions", HOOK)
    assert made.status_code == 201
    path = f"event-subscriptions/{made.json()['id']}"
    job = as_machine.get(f"jobs/{as_machine.post(f'{path}/test').json()['job_id']}").json()
    assert job["payload"]["body"]["type"] == "webhook.test"

    changed = as_machine.send("PATCH", path, json.dumps({"types": ["alert.fired", "job.failed"]}))
    assert changed.json()["types"] == ["job.failed", "alert.fired"]
    bad = as_machine.send("PATCH", path, json.dumps({"types": ["job.made_up"]}))
    assert bad.status_code == 400
    assert as_machine.delete(path).status_code == 204
    assert not EventSubscription.objects.exists()
