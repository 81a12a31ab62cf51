"""What a user sees of organizations and projects."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F, QuerySet

from orgs.access import Actor, visible
from orgs.models import ApiKey, AuditEntry, Organization, OrganizationMember, Project
from scheduler_project.lib.errors import NotFound


def list_organizations(user_id: UUID) -> QuerySet[Organization]:
    """The organizations of a user, newest first, each with his role as ``actor_role``."""
    mine = Organization.objects.filter(members__user=user_id).annotate(actor_role=F("members__role"))
    return mine.order_by("-id")


def list_projects(actor: Actor, organization_id: UUID | None = None) -> QuerySet[Project]:
    """The projects an actor sees, newest first, each with his role as ``actor_role``."""
    projects = visible(Project.objects.all(), actor, "").order_by("-id")
    return projects if organization_id is None else projects.filter(organization_id=organization_id)


def list_members(organization_id: UUID) -> QuerySet[OrganizationMember]:
    """The members of an organization with their accounts, the newest first."""
    members = OrganizationMember.objects.filter(organization_id=organization_id)
    return members.select_related("user").order_by("-id")


def list_api_keys(project_id: UUID) -> QuerySet[ApiKey]:
    """The keys of a project, revoked ones too, the newest first."""
    return ApiKey.objects.filter(project_id=project_id).order_by("-id")


def get_api_key(project_id: UUID, key_id: UUID) -> ApiKey:
    """One key of a project. Raises NotFound."""
    key = ApiKey.objects.filter(project_id=project_id, pk=key_id).first()
    if key is None:
        raise NotFound("There is no such API key.")
    return key


def list_audit(organization_id: UUID, target_type: str | None, target_id: str | None) -> QuerySet[AuditEntry]:
    """What was done in an organization, the newest first; to one kind of thing, or one thing, if asked for."""
    entries = AuditEntry.objects.filter(organization_id=organization_id).select_related("user", "api_key")
    if target_type is not None:
        entries = entries.filter(target_type=target_type)
    if target_id is not None:
        entries = entries.filter(target_id=target_id)
    return entries.order_by("-id")
