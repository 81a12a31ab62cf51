"""Who may do what. Roles are read from the database with the very row they guard, at each request.

What an actor can not see is ``NotFound``, in the same words as what does not exist; what he sees and may not do is
``Forbidden``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast
from uuid import UUID

from django.db.models import F, Model, QuerySet, Value

from orgs.models import ApiKey, Organization, Project, Role
from scheduler_project.lib.errors import Forbidden, NotFound, ValidationFailed

M = TypeVar("M", bound=Model)

_ROLE_OF_SCOPE = {
    ApiKey.Scope.READ.value: Role.VIEWER,
    ApiKey.Scope.SUBMIT.value: Role.MEMBER,
    ApiKey.Scope.MANAGE.value: Role.ADMIN,
}
_RUNNERS = frozenset({ApiKey.Scope.WORK.value, ApiKey.Scope.MANAGE.value})


@dataclass(frozen=True, slots=True)
class Person:
    """A user; may see the organizations he is a member of."""

    user_id: UUID


@dataclass(frozen=True, slots=True)
class Machine:
    """The holder of an API key; sees its project, with the role that goes with the key's scope."""

    key_id: UUID
    project_id: UUID
    scope: str

    @property
    def role(self) -> Role:
        """Never owner: keys do not manage members. Raises Forbidden for a key that only runs jobs: it sees nothing."""
        role = _ROLE_OF_SCOPE.get(self.scope)
        if role is None:
            raise Forbidden("A key of this scope runs jobs as a worker and does nothing else.")
        return role

    @property
    def may_submit(self) -> bool:
        """Is its role a member's at least?"""
        role = _ROLE_OF_SCOPE.get(self.scope)
        return role is not None and role.rank >= Role.MEMBER.rank


Actor = Person | Machine


def visible(queryset: QuerySet[M], actor: Actor, project: str) -> QuerySet[M]:
    """Only the rows of projects the actor sees; each carries his role there as ``actor_role``.

    Args:
        project: the way from the row to its project, empty for projects themselves.
    """
    way = f"{project}__" if project else ""
    alive = queryset.filter(**{f"{way}deleted_at": None})
    if isinstance(actor, Machine):
        mine = {f"{way}pk" if way else "pk": actor.project_id}
        return cast("QuerySet[M]", alive.filter(**mine).annotate(actor_role=Value(actor.role.value)))
    members = f"{way}organization__members"
    seen = alive.filter(**{f"{members}__user": actor.user_id}).annotate(actor_role=F(f"{members}__role"))
    return cast("QuerySet[M]", seen)


def get_visible(queryset: QuerySet[M], actor: Actor, project: str, *, needs: Role, what: str) -> M:
    """The one row of the queryset, for an actor who needs a role to do what he is about to do.

    Raises:
        NotFound: there is none, or he can not see it.
        Forbidden: he sees it, but his role is lower than ``needs``.
    """
    row = visible(queryset, actor, project).first()
    if row is None:
        raise NotFound(f"There is no such {what}.")
    require(getattr(row, "actor_role"), needs)  # noqa: B009 - an annotation, which no type declares
    return row


def require(role: str, needs: Role) -> None:
    """Forbidden unless ``role`` is at least ``needs``."""
    if Role(role).rank < needs.rank:
        raise Forbidden(f"This needs the role {needs.value}; yours is {role}.")


def runner_project_id(actor: Actor) -> UUID:
    """The project whose jobs an actor may run as a worker. Raises Forbidden for people and for lesser keys."""
    if isinstance(actor, Machine) and actor.scope in _RUNNERS:
        return actor.project_id
    raise Forbidden("Running jobs needs an API key of the scope work or manage.")


def get_project(actor: Actor, project_id: UUID, *, needs: Role) -> Project:
    """A project that is not deleted. Raises NotFound or Forbidden."""
    projects = Project.objects.filter(pk=project_id).select_related("organization")
    return get_visible(projects, actor, "", needs=needs, what="project")


def project_of_new(actor: Actor, project_id: UUID | None, *, needs: Role) -> Project:
    """The project that something new belongs to; the holder of a key need not name his.

    Raises:
        ValidationFailed: a person named none.
        NotFound, Forbidden: as ``get_project``.
    """
    if project_id is None:
        if not isinstance(actor, Machine):
            raise ValidationFailed.of("project_id", "is needed")
        project_id = actor.project_id
    return get_project(actor, project_id, needs=needs)


def get_organization(actor: Person, organization_id: UUID, *, needs: Role) -> Organization:
    """An organization the user is a member of. Raises NotFound or Forbidden."""
    rows: QuerySet[Any] = Organization.objects.filter(pk=organization_id, members__user=actor.user_id)
    organization: Any = rows.annotate(actor_role=F("members__role")).first()
    if organization is None:
        raise NotFound("There is no such organization.")
    require(organization.actor_role, needs)
    found: Organization = organization
    return found


def project_ids(actor: Actor) -> list[UUID]:
    """The projects the actor sees; none of them is deleted. Raises Forbidden for a key that only runs jobs."""
    if isinstance(actor, Machine):  # its project was there when the key was found
        require(actor.role.value, Role.VIEWER)
        return [actor.project_id]
    return list(visible(Project.objects.all(), actor, "").values_list("pk", flat=True))
