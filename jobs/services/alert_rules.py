"""Alert rules: create, change, delete. Whether the caller may is settled before."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from jobs.models import AlertRule
from jobs.models.alert import MAX_EMAILS, MAX_FOR_S, MAX_THRESHOLD, MAX_WINDOW_S, MIN_WINDOW_S
from jobs.services.alerting import close_alerts
from jobs.services.notices import check_url
from orgs.models import Project
from queues.models import Queue
from scheduler_project.lib.constraints import refusals, taken
from scheduler_project.lib.errors import Conflict, NotFound, ValidationFailed
from scheduler_project.lib.text import clean_name

MAX_NAME_CHARS, MOST, MAX_ATTEMPTS = 100, 50, 1_000_000
Kind = AlertRule.Kind
#: Kinds that can be narrowed to one queue.
OF_QUEUES = frozenset({Kind.FAILURE_RATE, Kind.OLDEST_AGE, Kind.DEAD_LETTER_GROWTH})
_TAKEN = {"alert_rules_name_in_project": taken("name", "is the name of another rule of this project")}
_BOUNDS = {"window_secs": (MIN_WINDOW_S, MAX_WINDOW_S), "for_secs": (0, MAX_FOR_S), "min_attempts": (1, MAX_ATTEMPTS)}
_MOST_PERCENT = 100


def create_rule(project: Project, *, by: UUID | None, **fields: Any) -> AlertRule:
    """A new rule; name, kind and threshold are needed.

    Raises:
        ValidationFailed: naming the field and what is allowed.
        Conflict: the name is taken, or the project has as many as it may.
    """
    rule = AlertRule(project=project, created_by_id=by, **fields)
    _check(rule)
    with refusals(_TAKEN):
        # Of two who create at once the second waits here and counts the first one's.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if AlertRule.objects.filter(project=project).count() >= MOST:
            raise Conflict(f"The project has {MOST} alert rules; delete one first.")
        rule.save(force_insert=True)
    return rule


def update_rule(rule: AlertRule, **changes: Any) -> AlertRule:
    """Change a rule, its kind apart. An open alert of one that is switched off is resolved.

    Raises:
        ValidationFailed, Conflict: as ``create_rule``.
        NotFound: somebody deleted it meanwhile.
    """
    for field, value in changes.items():
        setattr(rule, field, value)
    _check(rule)
    with refusals(_TAKEN):
        if AlertRule.objects.select_for_update(no_key=True).filter(pk=rule.pk).first() is None:
            raise NotFound("There is no such alert rule.")
        rule.save(update_fields=[*changes, "updated_at"])
        if not rule.is_enabled:
            close_alerts(rule, "The rule was switched off.")
    return rule


def delete_rule(rule: AlertRule) -> None:
    """Delete a rule; its history stays. Raises NotFound if it is gone already."""
    with transaction.atomic():
        AlertRule.objects.select_for_update().filter(pk=rule.pk).first()
        close_alerts(rule, "The rule was deleted.")
        if not AlertRule.objects.filter(pk=rule.pk).delete()[0]:
            raise NotFound("There is no such alert rule.")


def _check(rule: AlertRule) -> None:
    rule.name = clean_name(rule.name, "name", MAX_NAME_CHARS)
    if rule.kind not in Kind.values:
        raise ValidationFailed.of("kind", f"must be one of {', '.join(Kind.values)}")
    if rule.scope not in AlertRule.Scope.values:
        raise ValidationFailed.of("scope", f"must be one of {', '.join(AlertRule.Scope.values)}")
    _check_numbers(rule)
    _check_queue(rule)
    if rule.webhook_url:
        check_url(rule.webhook_url, "webhook_url")
    if len(rule.emails) > MAX_EMAILS:
        raise ValidationFailed.of("emails", f"must be at most {MAX_EMAILS} addresses")
    for place, address in enumerate(rule.emails):
        try:
            validate_email(address)
        except ValidationError:
            raise ValidationFailed.of(f"emails[{place}]", "must be an e-mail address") from None


def _check_numbers(rule: AlertRule) -> None:
    most = _MOST_PERCENT if rule.kind == Kind.FAILURE_RATE else MAX_THRESHOLD
    if not (math.isfinite(rule.threshold) and 0 < rule.threshold <= most):
        raise ValidationFailed.of("threshold", f"must be above 0 and at most {most:,.0f}")
    for name, (least, most_) in _BOUNDS.items():
        if not least <= getattr(rule, name) <= most_:
            raise ValidationFailed.of(name, f"must be from {least} to {most_}")


def _check_queue(rule: AlertRule) -> None:
    if rule.queue_id is None:
        return
    if rule.kind not in OF_QUEUES or rule.scope != AlertRule.Scope.PROJECT:
        allowed = ", ".join(sorted(OF_QUEUES))
        raise ValidationFailed.of("queue_id", f"goes only with the scope project and one of {allowed}")
    if not Queue.objects.filter(pk=rule.queue_id, project_id=rule.project_id, deleted_at=None).exists():
        raise ValidationFailed.of("queue_id", "there is no such queue in this project")
