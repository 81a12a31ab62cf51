"""Pure: how long to wait after a failed attempt. No input overflows, no delay exceeds its cap but by jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

JITTER = 0.5  # a policy with jitter spreads its delays by half to one and a half


@dataclass(frozen=True, slots=True)
class RetryRule:
    """A retry policy as numbers.

    Attributes:
        max_attempts: 1 or more; the last one's failure is final.
        left_s: seconds to the job's deadline, behind which no attempt begins; None without one.
        jitter: share by which a delay may differ either way, 0 to 1.
    """

    strategy: Literal["fixed", "linear", "exponential"] = "exponential"
    base_delay_ms: int = 1_000
    multiplier: float = 2.0
    max_delay_ms: int = 3_600_000
    max_attempts: int = 5
    jitter: float = JITTER
    left_s: float | None = None


#: For queues and jobs that name no policy.
DEFAULT_RULE = RetryRule()


def delay_s(rule: RetryRule, attempt_count: int, rng: random.Random | None = None) -> float:
    """Seconds to wait after ``attempt_count`` failures (1 after the first).

    fixed: base; linear: base x count; exponential: base x multiplier^(count-1); each at most ``max_delay_ms``,
    then spread by jitter.
    """
    count = max(1, attempt_count)
    delay_ms: float = rule.base_delay_ms
    if rule.strategy == "linear":
        delay_ms = rule.base_delay_ms * count
    elif rule.strategy == "exponential" and rule.base_delay_ms:
        try:
            delay_ms = rule.base_delay_ms * float(rule.multiplier) ** (count - 1)
        except OverflowError:
            delay_ms = rule.max_delay_ms
    delay_ms = min(delay_ms, rule.max_delay_ms)
    if rule.jitter:
        delay_ms *= (rng or random).uniform(1 - rule.jitter, 1 + rule.jitter)
    return delay_ms / 1000
