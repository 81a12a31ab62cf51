"""What people set of alert rules and event webhooks."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from django import forms

from jobs.models import AlertRule, EventSubscription, EventType
from jobs.models.alert import MAX_EMAILS, MAX_FOR_S, MAX_THRESHOLD, MAX_WINDOW_S, MIN_WINDOW_S
from jobs.models.outgoing import MAX_URL_CHARS
from jobs.services.alert_rules import MAX_ATTEMPTS, MAX_NAME_CHARS
from queues.models import Queue
from scheduler_project.lib.web.actions import DomainForm
from scheduler_project.lib.web.text import harmless


class RuleForm(DomainForm):
    field_of = {"queue_id": "queue"}

    name = forms.CharField(max_length=MAX_NAME_CHARS)
    kind = forms.ChoiceField(choices=AlertRule.Kind.choices, label="Watch")
    scope = forms.ChoiceField(choices=AlertRule.Scope.choices, initial=AlertRule.Scope.PROJECT, label="Of")
    queue = forms.ChoiceField(
        required=False, help_text="Only for failed attempts, the oldest ready job and new dead letters."
    )
    threshold = forms.FloatField(
        min_value=0, max_value=MAX_THRESHOLD, label="Threshold", help_text="From here on it is wrong; see the unit."
    )
    window_secs = forms.IntegerField(
        min_value=MIN_WINDOW_S, max_value=MAX_WINDOW_S, initial=300, label="Counted over, seconds",
        help_text="What is counted: attempts, dead letters, workers, due times.",
    )  # fmt: skip
    for_secs = forms.IntegerField(
        min_value=0, max_value=MAX_FOR_S, initial=0, label="Fires after, seconds", help_text="0: at once."
    )
    min_attempts = forms.IntegerField(
        min_value=1, max_value=MAX_ATTEMPTS, initial=10, label="Attempts at least", help_text="Of a failure rate."
    )
    webhook_url = forms.CharField(
        max_length=MAX_URL_CHARS, required=False, label="Call this URL", widget=forms.URLInput
    )
    emails = forms.CharField(
        required=False, label="Mail to", widget=forms.Textarea(attrs={"rows": 2}),
        help_text=f"At most {MAX_EMAILS} addresses, one a line.",
    )  # fmt: skip
    is_enabled = forms.BooleanField(required=False, initial=True, label="Switched on")

    def __init__(self, *args: Any, queues: list[Queue], is_new: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["queue"]
        field.choices = [("", "All queues"), *((str(queue.pk), harmless(queue.name, 80)) for queue in queues)]
        if not is_new:  # what a rule measures never changes
            del self.fields["kind"]

    def settings(self) -> dict[str, Any]:
        """As the services take them."""
        found = dict(self.cleaned_data)
        found["queue_id"] = found.pop("queue") or None
        found["emails"] = [part for part in re.split(r"[\s,;]+", found["emails"]) if part]
        return found


class SubscriptionForm(DomainForm):
    name = forms.CharField(max_length=MAX_NAME_CHARS)
    url = forms.CharField(max_length=MAX_URL_CHARS, label="URL", widget=forms.URLInput)
    is_active = forms.BooleanField(required=False, initial=True, label="Switched on")
    types = forms.MultipleChoiceField(choices=EventType.choices, label="Events", widget=forms.CheckboxSelectMultiple)

    def settings(self) -> dict[str, Any]:
        """As the services take them."""
        return dict(self.cleaned_data)


def values_of_rule(rule: AlertRule) -> dict[str, Any]:
    """The form's first values."""
    names = ("name", "scope", "threshold", "window_secs", "for_secs", "min_attempts", "webhook_url", "is_enabled")
    found = {name: getattr(rule, name) for name in names}
    return {**found, "queue": str(rule.queue_id or ""), "emails": "\n".join(rule.emails)}


def values_of_subscription(one: EventSubscription) -> dict[str, Any]:
    """The form's first values."""
    return {"name": one.name, "url": one.url, "types": one.types, "is_active": one.is_active}


def seal_of(values: dict[str, Any]) -> str:
    """Changes with whatever people set; sent along to see whether somebody else was faster."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]
