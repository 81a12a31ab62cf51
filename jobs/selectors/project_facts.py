"""What is set for a project and matters to handlers."""

from __future__ import annotations

from jobs.handlers.facts import ProjectFacts
from orgs.webhook_secrets import signing_keys


def facts_of_project(project_id: str) -> ProjectFacts:
    """Read the facts of a project.

    Raises:
        Sealed: one of its secrets can not be opened with the keys of this installation.
    """
    return ProjectFacts(webhook_secrets=signing_keys(project_id))
