"""What a person sets of a retry policy. Delays are seconds here and milliseconds in the table."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any

from django import forms

from queues.backoff import JITTER, RetryRule
from queues.bounds import MAX_MULTIPLIER
from queues.models import MAX_ATTEMPTS, MAX_DELAY_MS, RetryPolicy
from queues.services import MAX_NAME_CHARS
from scheduler_project.lib.web.actions import DomainForm

_MAX_S = MAX_DELAY_MS // 1000
#: A column -> the field that sets it.
_FIELDS = {"base_delay_ms": "base_delay_s", "max_delay_ms": "max_delay_s"}


class PolicyForm(DomainForm):
    field_of = _FIELDS

    name = forms.CharField(max_length=MAX_NAME_CHARS)
    strategy = forms.ChoiceField(
        choices=RetryPolicy.Strategy.choices, initial=RetryPolicy.Strategy.EXPONENTIAL, label="The delay grows"
    )
    max_attempts = forms.IntegerField(
        min_value=1, max_value=MAX_ATTEMPTS, initial=5, label="Attempts in all", help_text="1: never again."
    )
    base_delay_s = forms.DecimalField(
        min_value=0, max_value=_MAX_S, decimal_places=3, initial=1, label="First delay, seconds"
    )
    multiplier = forms.FloatField(
        min_value=1, max_value=MAX_MULTIPLIER, initial=2, required=False, help_text="Of exponential delays."
    )
    max_delay_s = forms.DecimalField(
        min_value=0, max_value=_MAX_S, decimal_places=3, initial=3600, label="Longest delay, seconds"
    )
    jitter = forms.BooleanField(
        required=False, initial=True, label="Spread by half", help_text="So that they do not all come back at once."
    )

    def clean_multiplier(self) -> float:
        """What is not asked for is the usual."""
        given = self.cleaned_data["multiplier"]
        return 2.0 if given is None else float(given)

    def settings(self) -> dict[str, Any]:
        """As the services take them."""
        found = dict(self.cleaned_data)
        for column, field in _FIELDS.items():
            found[column] = int(found.pop(field) * 1000)
        return found

    def rule(self) -> RetryRule | None:
        """The rule as far as it can be read; the name does not matter for it. None if it can not."""
        if set(self.errors) - {"name"}:
            return None
        found = self.settings()
        found.pop("name", None)
        return RetryRule(**{**found, "jitter": JITTER if found["jitter"] else 0.0})


def values_of(policy: RetryPolicy) -> dict[str, Any]:
    """The form's first values."""
    found = {name: getattr(policy, name, None) for name in PolicyForm.base_fields}
    for column, field in _FIELDS.items():
        found[field] = (Decimal(getattr(policy, column)) / 1000).normalize()
        found[field] = f"{found[field]:f}"
    return found


def seal_of(policy: RetryPolicy) -> str:
    """Changes with whatever people set; sent along to see whether somebody else was faster."""
    return hashlib.sha256(repr(values_of(policy)).encode()).hexdigest()[:16]
