"""What is set for a project and matters to handlers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """Settings of a job's project, as they were a few seconds ago at most.

    Attributes:
        webhook_secrets: the keys its webhook calls are signed with, the newest first; never shown.
    """

    webhook_secrets: tuple[bytes, ...] = field(default=(), repr=False)
