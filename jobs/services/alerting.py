"""Alerts: rules are looked at, begin to be broken, fire once, are resolved once. Never by who is at work, but by rows.

Of a rule at most one alert is open (a unique index). Each step is a guarded update in the transaction that submits its
notices: of two who look at once one moves it and tells, the other finds it moved.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from jobs.models import Alert, AlertRule, EventType
from jobs.selectors.alert_facts import Measured, measure, no_leader_s
from jobs.services.alert_notices import facts_of, tell_alert
from jobs.services.outgoing import emit
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import session
from scheduler_project.lib.sql import database_now

log = logs.get(__name__)

Kind, State = AlertRule.Kind, Alert.State
RULES_AT_ONCE = 20
FIRST = UUID(int=0)
#: What can be seen without a leader, by whoever is there. The rest is counted by the leader, and old counts would lie.
WITHOUT_LEADER = (Kind.NO_LEADER, Kind.SCHEDULE_LATE)
#: A leader that did not show itself for so long is missed; less is a change of leaders.
MISSED_AFTER_S = 5.0
KEEP = timedelta(days=365)


def look(after: UUID = FIRST, *, kinds: Collection[str] = Kind.values) -> UUID | None:
    """Look at the next few rules behind ``after``; the last one looked at, None when that was the end.

    A rule that can not be looked at never stops another.
    """
    rows = _enabled().filter(pk__gt=after, kind__in=list(kinds)).order_by("pk")
    rules = list(rows.select_related("project__organization")[:RULES_AT_ONCE])
    ids = {rule.pk: rule.project_id for rule in rules}
    open_ = Alert.objects.filter(project_id__in=set(ids.values()), rule_id__in=list(ids)).exclude(state=State.RESOLVED)
    alerts = {alert.rule_id: alert for alert in open_} if rules else {}
    now = database_now()
    for rule in rules:
        _look_safely(rule, alerts.get(rule.pk), now)
    return rules[-1].pk if len(rules) == RULES_AT_ONCE else None


def look_at_all(*, kinds: Collection[str] = Kind.values) -> None:
    """Look at every rule once."""
    after: UUID | None = FIRST
    while after is not None:
        after = look(after, kinds=kinds)


def look_without_leader() -> bool:
    """For workers: if nobody leads, look at what shows without a leader; was there something to look at?"""
    if not _enabled().filter(kind__in=WITHOUT_LEADER).exists() or no_leader_s(database_now()) < MISSED_AFTER_S:
        return False
    look_at_all(kinds=WITHOUT_LEADER)
    return True


def close_alerts(rule: AlertRule, resolution: str) -> None:
    """The rule is no longer looked at: what is open of it ends, in the caller's transaction."""
    for alert in Alert.objects.filter(project_id=rule.project_id, rule_id=rule.pk).exclude(state=State.RESOLVED):
        _resolve(rule, alert, resolution)


def forget_old(limit: int) -> int:
    """Forget up to ``limit`` alerts that were resolved long ago; how many."""
    old = Alert.objects.filter(resolved_at__lt=Now() - KEEP).values_list("pk", flat=True)[:limit]
    return Alert.objects.filter(pk__in=list(old)).delete()[0]


def _enabled() -> QuerySet[AlertRule]:
    return AlertRule.objects.filter(is_enabled=True, project__deleted_at=None)


def _look_safely(rule: AlertRule, alert: Alert | None, now: datetime) -> None:
    try:
        found = measure(rule, now)
        if _is_a_step_due(rule, alert, found, now):
            with transaction.atomic():
                _step(rule, alert, found, now)
    except Exception as error:  # boundary: one bad rule never stops the others
        if session() is None:
            raise
        log.error("alert_rule_not_evaluated", rule_id=str(rule.pk), kind=rule.kind, error=str(error))


def _is_a_step_due(rule: AlertRule, alert: Alert | None, found: Measured, now: datetime) -> bool:
    """Nearly always nothing changes, and then nothing is written or locked."""
    if found.value is None:
        return False  # not known now: nothing begins and nothing ends
    if found.value < rule.threshold:
        return alert is not None
    return alert is None or (alert.state == State.PENDING and _is_long_enough(rule, alert, now))


def _step(rule: AlertRule, alert: Alert | None, found: Measured, now: datetime) -> None:
    if found.value is not None and found.value < rule.threshold:
        if alert is not None:
            _resolve(rule, alert, "")
        return
    if alert is None:
        alert = _begin(rule, found, now)
    if alert is not None and alert.state == State.PENDING and _is_long_enough(rule, alert, now):
        _fire(rule, alert, found)


def _is_long_enough(rule: AlertRule, alert: Alert, now: datetime) -> bool:
    return (now - alert.since).total_seconds() >= rule.for_secs


def _begin(rule: AlertRule, found: Measured, now: datetime) -> Alert | None:
    """None if another evaluator began it in this moment, which goes on with it, or the rule was switched off."""
    # Whoever switches it off or deletes it holds its row: either he sees this alert, or he is seen here.
    if AlertRule.objects.select_for_update(no_key=True).filter(pk=rule.pk, is_enabled=True).first() is None:
        return None
    made = Alert(
        project_id=rule.project_id, rule_id=rule.pk, rule_name=rule.name, kind=rule.kind, threshold=rule.threshold,
        value=found.value or 0.0, details=found.details, since=now,
    )  # fmt: skip
    Alert.objects.bulk_create([made], ignore_conflicts=True)
    return Alert.objects.filter(pk=made.pk).first()


def _fire(rule: AlertRule, alert: Alert, found: Measured) -> None:
    mine = Alert.objects.filter(pk=alert.pk, state=State.PENDING)
    if mine.update(state=State.FIRING, fired_at=Now(), value=found.value, details=found.details):
        _tell(rule, alert, EventType.ALERT_FIRED)


def _resolve(rule: AlertRule, alert: Alert, resolution: str) -> None:
    if alert.state == State.PENDING:
        Alert.objects.filter(pk=alert.pk, state=State.PENDING).delete()
        return
    mine = Alert.objects.filter(pk=alert.pk, state=State.FIRING)
    if mine.update(state=State.RESOLVED, resolved_at=Now(), resolution=resolution):
        _tell(rule, alert, EventType.ALERT_RESOLVED)


def _tell(rule: AlertRule, alert: Alert, event: EventType) -> None:
    alert.refresh_from_db()
    tell_alert(rule, alert, event)
    emit(event, rule.project_id, facts_of(rule, alert))
    log.warning(
        event.value.replace(".", "_"), alert_id=str(alert.pk), rule=rule.name, kind=rule.kind, value=alert.value
    )
