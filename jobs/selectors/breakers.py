"""Circuit breakers that an actor sees."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from jobs.models import CircuitBreaker
from orgs.access import Actor, get_project
from orgs.models import Role
from orgs.selectors import list_projects
from scheduler_project.lib.errors import NotFound


def list_breakers(actor: Actor, project_id: UUID | None = None, state: str | None = None) -> QuerySet[CircuitBreaker]:
    """The breakers of the projects an actor sees, newest first."""
    projects = list_projects(actor).order_by()
    if project_id is not None:
        projects = projects.filter(pk=project_id)
    breakers = CircuitBreaker.objects.filter(project_id__in=projects.values("pk")).order_by("-id")
    return breakers if state is None else breakers.filter(state=state)


def get_breaker(actor: Actor, breaker_id: UUID, *, needs: Role, is_locked: bool = False) -> CircuitBreaker:
    """One breaker. Raises NotFound or Forbidden."""
    breakers = CircuitBreaker.objects.select_for_update(no_key=True) if is_locked else CircuitBreaker.objects.all()
    breaker = breakers.filter(pk=breaker_id).first()
    if breaker is None:
        raise NotFound("There is no such circuit breaker.")
    try:
        get_project(actor, breaker.project_id, needs=needs)
    except NotFound as error:
        raise NotFound("There is no such circuit breaker.") from error
    return breaker
