"""What a user sees of organizations and projects."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F, QuerySet

from orgs.access import Actor, visible
from orgs.models import Organization, Project


def list_organizations(user_id: UUID) -> QuerySet[Organization]:
    """The organizations of a user, newest first, each with his role as ``actor_role``."""
    mine = Organization.objects.filter(members__user=user_id).annotate(actor_role=F("members__role"))
    return mine.order_by("-id")


def list_projects(actor: Actor, organization_id: UUID | None = None) -> QuerySet[Project]:
    """The projects an actor sees, newest first, each with his role as ``actor_role``."""
    projects = visible(Project.objects.all(), actor, "").order_by("-id")
    return projects if organization_id is None else projects.filter(organization_id=organization_id)
