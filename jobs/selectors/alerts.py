"""Alert rules, their history, and event subscriptions, as far as an actor sees them."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from jobs.models import Alert, AlertRule, EventSubscription
from orgs.access import Actor, get_visible, visible
from orgs.models import Role

M = TypeVar("M", bound=Model)
MOST_FIRING = 20
Kind = AlertRule.Kind
_UNITS = {Kind.FAILURE_RATE: "%", Kind.OLDEST_AGE: " s", Kind.SCHEDULE_LATE: " s", Kind.NO_LEADER: " s"}
_WHAT = {
    Kind.FAILURE_RATE: "of the attempts failed",
    Kind.OLDEST_AGE: "waits the oldest ready job",
    Kind.DEAD_LETTER_GROWTH: "new dead letters",
    Kind.WORKER_LOST: "workers were lost",
    Kind.SCHEDULE_LATE: "is a schedule late",
    Kind.SCHEDULE_MISSED: "due times of schedules were missed",
    Kind.NO_LEADER: "no scheduler has led",
}


def list_rules(actor: Actor, project_id: UUID | None = None) -> QuerySet[AlertRule]:
    """The rules of the projects an actor sees, newest first."""
    return _listed(AlertRule.objects.all(), actor, project_id)


def get_rule(actor: Actor, rule_id: UUID, *, needs: Role, is_locked: bool = False) -> AlertRule:
    """One rule with its project and organization. Raises NotFound or Forbidden."""
    rows = AlertRule.objects.filter(pk=rule_id).select_related("project__organization")
    rows = rows.select_for_update(no_key=True, of=("self",)) if is_locked else rows
    return get_visible(rows, actor, "project", needs=needs, what="alert rule")


def list_alerts(
    actor: Actor, project_id: UUID | None = None, *, rule_id: UUID | None = None, state: str | None = None
) -> QuerySet[Alert]:
    """What fired, fires or is about to, newest first."""
    alerts = _listed(Alert.objects.all(), actor, project_id)
    alerts = alerts if rule_id is None else alerts.filter(rule_id=rule_id)
    return alerts if state is None else alerts.filter(state=state)


def get_alert(actor: Actor, alert_id: UUID, *, needs: Role) -> Alert:
    """One alert. Raises NotFound or Forbidden."""
    return get_visible(Alert.objects.filter(pk=alert_id), actor, "project", needs=needs, what="alert")


def firing_alerts(project_id: UUID) -> QuerySet[Alert]:
    """What fires in a project now, the newest first, up to MOST_FIRING."""
    return Alert.objects.filter(project_id=project_id, state=Alert.State.FIRING).order_by("-id")[:MOST_FIRING]


def list_subscriptions(actor: Actor, project_id: UUID | None = None) -> QuerySet[EventSubscription]:
    """The subscriptions of the projects an actor sees, newest first."""
    return _listed(EventSubscription.objects.all(), actor, project_id)


def get_subscription(actor: Actor, subscription_id: UUID, *, needs: Role, is_locked: bool = False) -> EventSubscription:
    """One subscription. Raises NotFound or Forbidden."""
    rows = EventSubscription.objects.filter(pk=subscription_id)
    rows = rows.select_for_update(no_key=True, of=("self",)) if is_locked else rows
    return get_visible(rows, actor, "project", needs=needs, what="event subscription")


def _listed(rows: QuerySet[M], actor: Actor, project_id: UUID | None) -> QuerySet[M]:
    seen = visible(rows, actor, "project").order_by("-id")
    return seen if project_id is None else seen.filter(project_id=project_id)


def sentence_of(alert: Alert) -> str:
    """What was wrong, in words."""
    unit = _UNITS.get(Kind(alert.kind), "")
    return f"{alert.value:,g}{unit} {_WHAT[Kind(alert.kind)]} (threshold {alert.threshold:,g}{unit})"
