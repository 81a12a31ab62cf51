"""What the numbers of a queue and of a retry policy may be; the tables' constraints say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from queues.models import (
    MAX_ATTEMPTS,
    MAX_CONCURRENCY,
    MAX_DELAY_MS,
    MAX_VISIBILITY_SECS,
    MIN_VISIBILITY_SECS,
    PRIORITY_BOUND,
    RetryPolicy,
)
from scheduler_project.lib.errors import FieldError, ValidationFailed

MAX_RATE = 1_000_000
MAX_RATE_PERIOD_SECS = 86_400
MAX_MULTIPLIER = 100.0


@dataclass(frozen=True, slots=True)
class Bound:
    """The least and the greatest value, both allowed."""

    least: float
    greatest: float
    is_optional: bool = False

    def allows(self, value: float | None) -> bool:
        """NaN is between no two numbers."""
        return self.is_optional if value is None else self.least <= value <= self.greatest

    def __str__(self) -> str:
        return f"must be from {self.least:g} to {self.greatest:g}{' or null' if self.is_optional else ''}"


QUEUE_BOUNDS: Mapping[str, Bound] = {
    "priority": Bound(-PRIORITY_BOUND, PRIORITY_BOUND),
    "max_concurrency": Bound(1, MAX_CONCURRENCY, is_optional=True),
    "visibility_timeout_secs": Bound(MIN_VISIBILITY_SECS, MAX_VISIBILITY_SECS),
    "max_concurrency_per_key": Bound(1, MAX_CONCURRENCY),
    "rate_limit": Bound(1, MAX_RATE, is_optional=True),
    "rate_period_secs": Bound(1, MAX_RATE_PERIOD_SECS, is_optional=True),
}
POLICY_BOUNDS: Mapping[str, Bound] = {
    "base_delay_ms": Bound(0, MAX_DELAY_MS),
    "multiplier": Bound(1, MAX_MULTIPLIER),
    "max_delay_ms": Bound(0, MAX_DELAY_MS),
    "max_attempts": Bound(1, MAX_ATTEMPTS),
}


def check_queue(settings: Mapping[str, Any]) -> None:
    """ValidationFailed, naming every field that is out of bounds."""
    errors = list(_outside(settings, QUEUE_BOUNDS))
    if (settings.get("rate_limit") is None) != (settings.get("rate_period_secs") is None):
        missing = "rate_limit" if settings.get("rate_limit") is None else "rate_period_secs"
        errors.append(FieldError(missing, "is needed too: a rate is a limit in a period"))
    _raise(errors)


def check_policy(settings: Mapping[str, Any]) -> None:
    """ValidationFailed, naming every field that is out of bounds."""
    errors = list(_outside(settings, POLICY_BOUNDS))
    strategy = settings.get("strategy")
    if strategy is not None and strategy not in RetryPolicy.Strategy.values:
        errors.append(FieldError("strategy", f"must be one of {', '.join(RetryPolicy.Strategy.values)}"))
    _raise(errors)


def _outside(settings: Mapping[str, Any], bounds: Mapping[str, Bound]) -> Iterator[FieldError]:
    for name, bound in bounds.items():
        if name in settings and not bound.allows(settings[name]):
            yield FieldError(name, str(bound))


def _raise(errors: list[FieldError]) -> None:
    if errors:
        raise ValidationFailed("; ".join(f"{e.field}: {e.message}" for e in errors), errors)
