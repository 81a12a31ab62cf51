"""What a person sets of a queue."""

from __future__ import annotations

import hashlib
from typing import Any

from django import forms

from queues.bounds import MAX_RATE, MAX_RATE_PERIOD_SECS
from queues.models import (
    MAX_CONCURRENCY,
    MAX_VISIBILITY_SECS,
    MIN_VISIBILITY_SECS,
    PRIORITY_BOUND,
    Queue,
    RetryPolicy,
)
from scheduler_project.lib.web.actions import DomainForm
from scheduler_project.lib.web.choices import NamedChoiceField


class QueueForm(DomainForm):
    name = forms.CharField(max_length=100)
    priority = forms.IntegerField(
        min_value=-PRIORITY_BOUND, max_value=PRIORITY_BOUND, initial=0, help_text="Higher is served first."
    )
    max_concurrency = forms.IntegerField(
        label="Running at once", min_value=1, max_value=MAX_CONCURRENCY, required=False, help_text="Empty: no limit."
    )
    rate_limit = forms.IntegerField(label="Rate: jobs", min_value=1, max_value=MAX_RATE, required=False)
    rate_period_secs = forms.IntegerField(
        label="in so many seconds", min_value=1, max_value=MAX_RATE_PERIOD_SECS, required=False
    )
    visibility_timeout_secs = forms.IntegerField(
        label="Lease, seconds", min_value=MIN_VISIBILITY_SECS, max_value=MAX_VISIBILITY_SECS, initial=60
    )
    default_retry_policy_id = NamedChoiceField(
        RetryPolicy.objects.none(), label="Retry policy", required=False, empty_label="Default"
    )

    def __init__(self, project_id: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        policies: Any = self.fields["default_retry_policy_id"]
        policies.queryset = RetryPolicy.objects.filter(project=project_id).order_by("name")

    def settings(self) -> dict[str, Any]:
        """As the service takes them."""
        policy = self.cleaned_data.get("default_retry_policy_id")
        return {**self.cleaned_data, "default_retry_policy_id": policy.pk if policy else None}


def values_of(queue: Queue) -> dict[str, Any]:
    """The form's first values."""
    return {name: getattr(queue, name) for name in QueueForm.base_fields}


def seal_of(queue: Queue) -> str:
    """Changes with whatever people set; sent along to see whether somebody else was faster."""
    return hashlib.sha256(repr((values_of(queue), queue.is_paused)).encode()).hexdigest()[:16]
