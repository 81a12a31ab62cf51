"""What an alert says, and to whom: a call to the rule's address and a mail to its people, as jobs."""

from __future__ import annotations

from typing import Any

from jobs.models import Alert, AlertRule, EventType
from jobs.selectors.alerts import sentence_of
from jobs.services.notices import email_job, send, webhook_job


def facts_of(rule: AlertRule, alert: Alert) -> dict[str, Any]:
    """The ``data`` of an event about an alert."""
    return {
        "alert_id": str(alert.pk),
        "rule_id": str(rule.pk),
        "rule": rule.name,
        "kind": alert.kind,
        "scope": rule.scope,
        "project_id": str(rule.project_id),
        "project": f"{rule.project.organization.slug}/{rule.project.slug}",
        "state": alert.state,
        "value": alert.value,
        "threshold": alert.threshold,
        "summary": sentence_of(alert),
        "details": alert.details,
        "since": alert.since.isoformat(),
        "fired_at": alert.fired_at and alert.fired_at.isoformat(),
        "resolved_at": alert.resolved_at and alert.resolved_at.isoformat(),
        "resolution": alert.resolution,
    }


def tell_alert(rule: AlertRule, alert: Alert, event: EventType) -> None:
    """Submit the notices of a step, in the transaction of the step."""
    jobs, facts = [], facts_of(rule, alert)
    at = (alert.resolved_at if event == EventType.ALERT_RESOLVED else alert.fired_at) or alert.since
    key = f"alert:{alert.pk}:{event.value}"
    if rule.webhook_url:
        jobs.append(webhook_job(rule.webhook_url, event.value, at, facts, key=f"{key}:webhook"))
    # A mail each: one address that is refused does not keep the others from it, and nobody sees the others.
    for place, address in enumerate(rule.emails):
        subject = f"[{'RESOLVED' if event == EventType.ALERT_RESOLVED else 'FIRING'}] {rule.name} ({facts['project']})"
        jobs.append(email_job([address], subject, _text(rule, alert, facts), key=f"{key}:email:{place}"))
    send(rule.project_id, jobs)


def _text(rule: AlertRule, alert: Alert, facts: dict[str, Any]) -> str:
    lines = [
        f"{rule.name}: {facts['summary']}.",
        "",
        f"State:    {alert.state}",
        f"Project:  {facts['project']}" + (" and its sisters" if rule.scope == AlertRule.Scope.ORGANIZATION else ""),
        f"Since:    {_time(facts['since'])}",
        f"Fired:    {_time(facts['fired_at'])}",
    ]
    if facts["resolved_at"]:
        lines.append(f"Resolved: {_time(facts['resolved_at'])} {alert.resolution}".rstrip())
    for name, value in alert.details.items():
        some = ", ".join(f"{k}: {v}" for k, v in value.items()) if isinstance(value, dict) else value
        some = ", ".join(map(str, some)) if isinstance(some, list) else some
        if some not in ("", None):
            lines.append(f"{name.capitalize() + ':':<10}{some}")
    lines += ["", f"Alert {alert.pk} of rule {rule.pk}. Who is told stands in the project's settings, under Alerts."]
    return "\n".join(lines)


def _time(text: str | None) -> str:
    return (text or "")[:19].replace("T", " ") + " UTC"
