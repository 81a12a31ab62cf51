"""What is set for a project and matters to handlers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """Settings of a job's project, as they were a few seconds ago at most.

    Attributes:
        webhook_secrets: the keys its webhook calls are signed with, the newest first; never shown.
        egress_allow: if not empty, the only hosts and networks that calls of its organization reach.
        egress_deny: hosts and networks that they never reach.
    """

    webhook_secrets: tuple[bytes, ...] = field(default=(), repr=False)
    egress_allow: tuple[str, ...] = ()
    egress_deny: tuple[str, ...] = ()
