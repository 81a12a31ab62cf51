"""Who may open a page: ``@member_view`` stands on every view below an organization or project."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib.auth.decorators import login_required
from django.db.models import F
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from accounts.models import User
from orgs.access import Person, visible
from orgs.models import Organization, Project, Role
from scheduler_project.lib.errors import Forbidden, NotFound
from scheduler_project.lib.web.viewer import A_YEAR_S, PROJECT

View = Callable[..., HttpResponse]
T = TypeVar("T")


class MemberRequest(HttpRequest):
    """A request of a member: what ``member_view`` found out. ``project`` is missing on organizations' pages."""

    user: User
    organization: Organization
    project: Project
    role: Role
    actor: Person
    #: The database's clock, as of the start of the request.
    now: datetime


def member_view(*, needs: Role = Role.VIEWER) -> Callable[[View], View]:
    """Resolves ``org_slug`` and ``project_slug`` of the path, which the view then does not get.

    A stranger gets the 404 of what does not exist, a member with too low a role a 403 that names the role.
    """

    def decorate(view: View) -> View:
        @login_required
        @wraps(view)
        def guarded(request: HttpRequest, org_slug: str, project_slug: str = "", **path: Any) -> HttpResponse:
            member = _resolve(request, org_slug, project_slug)
            if member.role.rank < needs.rank:
                return too_low(request, needs, member.role)
            try:
                answer = view(member, **path)
            except NotFound as error:
                raise Http404(error.message) from None
            except Forbidden:
                return too_low(request, needs, member.role)
            if project_slug and request.COOKIES.get(PROJECT) != f"{org_slug}/{project_slug}":
                answer.set_cookie(PROJECT, f"{org_slug}/{project_slug}", A_YEAR_S, samesite="Lax", httponly=True)
            return answer

        guarded.needed_role = needs  # type: ignore[attr-defined] # the walk over all pages reads it
        return guarded

    return decorate


def may(request: HttpRequest, role: Role) -> bool:
    """Does the member's role suffice? For templates, which only mirror what views check."""
    own: Role | None = getattr(request, "role", None)
    return own is not None and own.rank >= role.rank


def path_in(request: MemberRequest, name: str, *rest: Any) -> str:
    """The path of a page of the project."""
    return reverse(name, args=[request.organization.slug, request.project.slug, *rest])


def of_project(request: MemberRequest, found: T, what: str) -> T:
    """It, if it is of this very project: one of another project of mine has no place on this one's pages.

    Raises:
        NotFound: it is not.
    """
    if getattr(found, "project_id") != request.project.pk:  # noqa: B009 - every model of a project has it
        raise NotFound(f"There is no such {what}.")
    return found


def too_low(request: HttpRequest, needs: Role, own: Role) -> HttpResponse:
    """The 403 that says which role is needed."""
    text = f"This needs the role {needs.label.lower()}; yours is {own.label.lower()}. An owner can change it."
    return render(
        request, "shared/error.html", {"status": 403, "title": "Not with your role", "text": text}, status=403
    )


def _resolve(request: HttpRequest, org_slug: str, project_slug: str) -> MemberRequest:
    member = cast(MemberRequest, request)
    member.actor = Person(member.user.pk)
    row: Any
    if project_slug:
        projects = Project.objects.filter(organization__slug=org_slug, slug=project_slug)
        seen = visible(projects.select_related("organization"), member.actor, "")
        row = seen.annotate(now=Now()).first()
    else:
        mine = Organization.objects.filter(slug=org_slug, members__user=member.user.pk)
        row = mine.annotate(actor_role=F("members__role"), now=Now()).first()
    if row is None:
        raise Http404("There is no such page.")
    if project_slug:
        member.project = row
    member.organization = row.organization if project_slug else row
    member.role, member.now = Role(row.actor_role), row.now
    return member
