"""What an explanation is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that stands in a job's way, or says that nothing does."""

    code: str
    message: str
    more: dict[str, Any] = field(default_factory=dict)
