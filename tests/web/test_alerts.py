"""The pages of alerts and event webhooks: made, changed, tried and removed by forms alone."""

from __future__ import annotations

import pytest

from jobs.models import Alert, AlertRule, EventSubscription, Job
from jobs.services.alert_rules import create_rule
from jobs.services.subscriptions import create_subscription
from orgs.models import AuditEntry
from orgs.webhook_secrets import create_secret
from scheduler_project.lib.sql import database_now
from tests.factories import make_project
from tests.web.forms import found_in, token_of

URL = "https://hooks.example.com/in"
RULE = {
    "name": "Too late", "kind": "oldest_age", "scope": "project", "queue": "", "threshold": "300",
    "window_secs": "300", "for_secs": "0", "min_attempts": "10", "webhook_url": URL, "is_enabled": "on",
    "emails": "a@example.com\nb@example.com",
}  # fmt: skip
HOOK = {"name": "Chat", "url": URL, "is_active": "on", "types": ["job.dead_letter", "alert.fired"]}


@pytest.fixture
def alerts(home):
    return f"{home}settings/alerts"


@pytest.fixture
def hooks(home):
    return f"{home}settings/event-webhooks"


def read(client, path):
    return client.get(path).content.decode()


def seal_in(html):
    return found_in(r'name="seal" value="([^"]*)"', html)


def test_a_rule_is_made_and_changed_by_its_form(signed_in, alerts, project):
    client = signed_in("manager")
    assert client.post(f"{alerts}/new", RULE).status_code == 302
    rule = AlertRule.objects.get()
    assert (rule.kind, rule.threshold, rule.emails) == ("oldest_age", 300.0, ["a@example.com", "b@example.com"])
    assert rule.created_by is not None

    seal = seal_in(read(client, f"{alerts}/{rule.pk}"))
    changed = {**RULE, "threshold": "60", "seal": seal}
    del changed["is_enabled"]
    assert client.post(f"{alerts}/{rule.pk}", changed).status_code == 302
    rule.refresh_from_db()
    assert (rule.threshold, rule.is_enabled, rule.kind) == (60.0, False, "oldest_age")
    assert set(AuditEntry.objects.values_list("action", flat=True)) == {"alert_rule.create", "alert_rule.update"}

    late = client.post(f"{alerts}/{rule.pk}", {**changed, "threshold": "1"})
    assert late.status_code == 409
    assert "Somebody changed this rule" in late.content.decode()


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("emails", "nobody", "must be an e-mail address"),
        ("webhook_url", "http://10.0.0.1/", "closed by the egress policy"),
        ("threshold", "0", "must be above 0"),
        ("window_secs", "1", "greater than or equal to 60"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(signed_in, alerts, queue, field, value, says):
    answer = signed_in("manager").post(f"{alerts}/new", {**RULE, field: value})

    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert not AlertRule.objects.exists()


def test_a_rule_of_another_project_is_not_found_here(signed_in, alerts, queue):
    sister = create_rule(make_project(queue.project.organization), by=None, name="r", kind="no_leader", threshold=1)

    assert signed_in("manager").get(f"{alerts}/{sister.pk}").status_code == 404


def test_deleting_a_rule_asks_first(signed_in, alerts, project):
    rule = create_rule(project, by=None, name="r", kind="no_leader", threshold=1)
    client = signed_in("manager")
    asked = client.post(f"{alerts}/{rule.pk}/delete")
    assert AlertRule.objects.exists()

    client.post(f"{alerts}/{rule.pk}/delete", {"confirm_token": token_of(asked)})
    assert not AlertRule.objects.exists()


def test_what_fires_stands_on_the_page_and_on_the_dashboard(signed_in, home, alerts, project):
    rule = create_rule(project, by=None, name="r", kind="no_leader", threshold=1)
    Alert.objects.create(
        project=project, rule_id=rule.pk, rule_name="r", kind="no_leader", threshold=1, value=20, state="firing",
        fired_at=database_now(),
    )  # fmt: skip
    client = signed_in("viewer")

    page, dashboard = read(client, alerts), read(client, home)

    assert ">Firing<" in page
    for html in (page, dashboard):
        assert "20 s no scheduler has led (threshold 1 s)" in html
        assert "<svg onload" not in html
    assert "settings/alerts" in dashboard


def test_a_webhook_is_made_tried_changed_and_deleted(signed_in, hooks, project):
    client = signed_in("manager")
    assert client.post(f"{hooks}/new", HOOK).status_code == 302
    made = EventSubscription.objects.get()
    assert made.types == ["job.dead_letter", "alert.fired"]
    assert "Calls are not signed" in read(client, hooks)
    create_secret(project, by=None)
    assert "Calls are not signed" not in read(client, hooks)

    tried = client.post(f"{hooks}/{made.pk}/test")
    job = Job.objects.get()
    assert tried["Location"].endswith(f"/jobs/{job.pk}")
    assert job.payload["body"]["type"] == "webhook.test"

    seal = seal_in(read(client, f"{hooks}/{made.pk}"))
    assert client.post(f"{hooks}/{made.pk}", {**HOOK, "types": ["job.failed"], "seal": seal}).status_code == 302
    assert client.post(f"{hooks}/{made.pk}", {**HOOK, "seal": seal}).status_code == 409
    made.refresh_from_db()
    assert made.types == ["job.failed"]

    asked = client.post(f"{hooks}/{made.pk}/delete")
    client.post(f"{hooks}/{made.pk}/delete", {"confirm_token": token_of(asked)})
    assert not EventSubscription.objects.exists()


def test_a_webhook_needs_an_event_and_an_address(signed_in, hooks, queue):
    answer = signed_in("manager").post(f"{hooks}/new", {"name": "x", "url": "nowhere"})

    assert answer.status_code == 422
    assert not EventSubscription.objects.exists()


def test_a_failing_webhook_says_so(signed_in, hooks, project):
    made = create_subscription(project, name="Chat", url=URL, types=["job.failed"], by=None)
    EventSubscription.objects.filter(pk=made.pk).update(last_error="bad_status: 500", last_error_at=database_now())

    html = read(signed_in("viewer"), hooks)

    assert ">Failing<" in html
    assert "bad_status: 500" in html
    assert "/test" not in html
