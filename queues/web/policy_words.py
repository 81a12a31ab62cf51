"""What a retry policy does, said in a sentence and counted out attempt by attempt. Pure: it takes a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from queues.backoff import JITTER, RetryRule, delay_s
from queues.models import RetryPolicy
from scheduler_project.lib.web.durations import exact, number

MOST_STEPS = 12
#: Delays that stand in a list beside the policy's name.
MOST_CHIPS = 5


@dataclass(frozen=True, slots=True)
class Step:
    """A retry: how long it waits, at least and at most, and when it comes, counted from the first failure."""

    number: int
    wait_s: float
    least_s: float
    most_s: float
    since_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """All retries of a rule, of which the first are listed."""

    sentence: str
    steps: Sequence[Step]
    n_more: int
    total_s: float
    longest_s: float
    is_spread: bool
    warnings: Sequence[str]

    @property
    def chips(self) -> list[str]:
        """The first delays; one is enough where all are the same."""
        if len({step.wait_s for step in self.steps}) == 1:
            return [exact(self.steps[0].wait_s)]
        return [exact(step.wait_s) for step in self.steps[:MOST_CHIPS]]

    @property
    def has_more_chips(self) -> bool:
        """Are there more retries than chips?"""
        return len(self.steps) + self.n_more > len(self.chips)


def rule_of(policy: RetryPolicy) -> RetryRule:
    """A stored policy as numbers."""
    return RetryRule(
        strategy=policy.strategy,  # type: ignore[arg-type] # a constraint of the table keeps it one of the three
        base_delay_ms=policy.base_delay_ms,
        multiplier=policy.multiplier,
        max_delay_ms=policy.max_delay_ms,
        max_attempts=policy.max_attempts,
        jitter=JITTER if policy.jitter else 0.0,
    )


def plan_of(rule: RetryRule) -> Plan:
    """Count it out."""
    even = replace(rule, jitter=0.0)
    waits = [delay_s(even, count) for count in range(1, rule.max_attempts)]
    steps, since_s = [], 0.0
    for index, wait_s in enumerate(waits[:MOST_STEPS]):
        since_s += wait_s
        steps.append(Step(index + 1, wait_s, wait_s * (1 - rule.jitter), wait_s * (1 + rule.jitter), since_s))
    return Plan(
        sentence=_sentence(rule, sum(waits)),
        steps=steps,
        n_more=len(waits) - len(steps),
        total_s=sum(waits),
        longest_s=max(waits, default=0.0) * (1 + rule.jitter),
        is_spread=bool(rule.jitter),
        warnings=list(_warnings(rule)),
    )


def _sentence(rule: RetryRule, total_s: float) -> str:
    if rule.max_attempts == 1:
        return "Never tries again: the first failure is final"
    base, most = exact(rule.base_delay_ms / 1000), exact(rule.max_delay_ms / 1000)
    is_capped = rule.max_delay_ms < delay_s(replace(rule, jitter=0.0, max_delay_ms=10**15), rule.max_attempts - 1) * 1e3
    capped = f", {most} at most" if is_capped else ""
    if rule.strategy == "fixed" or (rule.multiplier == 1 and rule.strategy == "exponential"):
        shape = f"Waits {exact(delay_s(replace(rule, jitter=0.0), 1))} before each retry"
    elif rule.strategy == "linear":
        shape = f"Waits {base}, and {base} more with each retry{capped}"
    else:
        shape = f"Waits {base}, then {rule.multiplier:g} times as long with each retry{capped}"
    spread = f", spread by ±{rule.jitter * 100:.0f} %" if rule.jitter else ""
    return f"{shape}{spread}; gives up after {number(rule.max_attempts)} attempts, about {exact(total_s)} in all"


def _warnings(rule: RetryRule) -> list[str]:
    if rule.max_attempts == 1:
        return []
    found = []
    if not rule.base_delay_ms or not rule.max_delay_ms:
        found.append("It tries again at once: what is down is asked as fast as workers can.")
    elif not rule.jitter:
        found.append("Without jitter jobs that failed together come back together, in one moment.")
    if rule.max_delay_ms < rule.base_delay_ms:
        found.append("The longest delay is shorter than the first one: every retry waits the longest delay.")
    return found
