"""Who belongs to an organization: add, change role, remove. Whether the caller may is settled before.

There is always an owner: the organization's row is locked before owners are counted, so of two owners who leave at
once one stays.
"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from accounts.models import User
from orgs.models import Organization, OrganizationMember, Role
from scheduler_project.lib.constraints import refusals, taken
from scheduler_project.lib.errors import Conflict, NotFound, ValidationFailed

_NO_ACCOUNT = "nobody with this address has an account; ask them to register first"


def add_member(organization: Organization, *, email: str, role: str) -> OrganizationMember:
    """Give a person who has an account a role.

    Raises:
        ValidationFailed: no account has this address, or it is closed.
        Conflict: is a member already.
    """
    user = User.objects.filter(email=email.strip().lower(), is_active=True).first()
    if user is None:
        raise ValidationFailed.of("email", _NO_ACCOUNT)
    with refusals({"organization_members_once": taken("email", "is a member already")}):
        return OrganizationMember.objects.create(organization=organization, user=user, role=role)


def change_role(member: OrganizationMember, role: str) -> OrganizationMember:
    """Give a member another role.

    Raises:
        Conflict: the last owner would be none any more.
        NotFound: is no member any more.
    """
    with transaction.atomic():
        _keep_an_owner(member, stays=role == Role.OWNER)
        if not OrganizationMember.objects.filter(pk=member.pk).update(role=role):
            raise NotFound("There is no such member.")
    member.role = role
    return member


def remove_member(member: OrganizationMember) -> None:
    """End a membership; what the person made stays.

    Raises:
        Conflict: the last owner would leave.
        NotFound: is no member any more.
    """
    with transaction.atomic():
        _keep_an_owner(member, stays=False)
        if not OrganizationMember.objects.filter(pk=member.pk).delete()[0]:
            raise NotFound("There is no such member.")


def get_member(organization: Organization, member_id: UUID) -> OrganizationMember:
    """One member with the account. Raises NotFound."""
    members = OrganizationMember.objects.filter(organization=organization, pk=member_id)
    member = members.select_related("user").first()
    if member is None:
        raise NotFound("There is no such member.")
    return member


def _keep_an_owner(member: OrganizationMember, *, stays: bool) -> None:
    # Locked alone, in no order with other rows: whoever changes members comes this way.
    Organization.objects.select_for_update(no_key=True).get(pk=member.organization_id)
    others = OrganizationMember.objects.filter(organization_id=member.organization_id, role=Role.OWNER)
    if not stays and not others.exclude(pk=member.pk).exists():
        raise Conflict("An organization needs an owner: make somebody else an owner first.")
