"""What stands around every page: navigation with counts, the switcher, the viewer's choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject

from jobs.selectors.surroundings import Surroundings, surroundings
from orgs.models import Role
from orgs.web.access import may
from scheduler_project.lib.web import viewer


class Item(NamedTuple):
    """A line of the navigation; ``key`` is pressed after g."""

    name: str
    label: str
    key: str
    amount: int | None
    url: str


#: Url name, label, key, which of the counts. A page whose url name does not exist yet is not shown.
PAGES = (
    ("dashboard", "Dashboard", "d", ""),
    ("queues", "Queues", "q", "queues"),
    ("jobs", "Jobs", "j", ""),
    ("workflows", "Workflows", "w", ""),
    ("batches", "Batches", "b", ""),
    ("workers", "Workers", "k", "workers"),
    ("dead_letter", "Dead letter", "x", "dead"),
    ("scheduled_jobs", "Schedules", "s", "schedules"),
    ("retry_policies", "Retry policies", "p", ""),
    ("circuit_breakers", "Circuit breakers", "c", ""),
    ("operations", "Operations", "o", ""),
    ("proofs", "Proofs", "f", ""),
    ("audit_log", "Audit log", "a", ""),
    ("settings", "Settings", ",", ""),
)

#: Pages that not every member may open.
NEEDS = {"audit_log": Role.ADMIN}


def shell(request: HttpRequest) -> dict[str, Any]:
    """For every template; what needs the database is read only when a template asks for it."""
    around = SimpleLazyObject(lambda: _around(request))
    return {
        "theme": viewer.choice_of(request, viewer.THEME, viewer.THEMES),
        "pace": viewer.choice_of(request, viewer.PACE, viewer.PACES),
        "paces": viewer.PACES,
        "zone": viewer.zone_of(request),
        "chosen_zone": request.COOKIES.get(viewer.ZONE, ""),
        "zones": viewer.zones(),
        "environment": settings.ENVIRONMENT_BADGE,
        "nav": SimpleLazyObject(lambda: navigation(request, around.counts)),
        "projects": SimpleLazyObject(lambda: around.places),
        "may_admin": may(request, Role.ADMIN),
        "may_submit": may(request, Role.MEMBER),
        "now": getattr(request, "now", None),
        "project": getattr(request, "project", None),
        "organization": getattr(request, "organization", None),
    }


def navigation(request: HttpRequest, counts: Mapping[str, int]) -> list[Item]:
    """The pages of the request's project that exist."""
    project = getattr(request, "project", None)
    if project is None:
        return []
    slugs = [project.organization.slug, project.slug]
    items = []
    for name, label, key, counted in PAGES:
        if not may(request, NEEDS.get(name, Role.VIEWER)):
            continue
        try:
            items.append(Item(name, label, key, counts.get(counted), reverse(name, args=slugs)))
        except NoReverseMatch:
            continue
    return items


def _around(request: HttpRequest) -> Surroundings:
    project, actor = getattr(request, "project", None), getattr(request, "actor", None)
    return Surroundings({}, []) if project is None or actor is None else surroundings(project.pk, actor)
