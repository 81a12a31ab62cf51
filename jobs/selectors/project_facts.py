"""What is set for a project and matters to handlers."""

from __future__ import annotations

from jobs.handlers.facts import ProjectFacts
from orgs.egress import egress_of_project
from orgs.webhook_secrets import signing_keys


def facts_of_project(project_id: str) -> ProjectFacts:
    """Read the facts of a project.

    Raises:
        NotFound: there is no such project.
        Sealed: one of its secrets can not be opened with the keys of this installation.
    """
    allow, deny = egress_of_project(project_id)
    return ProjectFacts(signing_keys(project_id), tuple(allow), tuple(deny))
