"""The audit log of the organization, for its admins: who did what, on what, and what it changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_safe

from orgs.models import AuditEntry, Project, Role
from orgs.selectors import list_audit, list_projects
from orgs.web.access import MemberRequest, member_view
from scheduler_project.lib.web.pages import respond
from scheduler_project.lib.web.paging import id_or_none, page_by_id

#: What an entry is about -> the url name of its page.
PAGES = {
    "job": "job", "queue": "queue", "retry_policy": "retry_policy", "scheduled_job": "scheduled_job",
    "dead_letter": "letter", "operation": "operation", "job_batch": "batch",
}  # fmt: skip
#: The kinds to choose from: what ``deed`` calls its objects.
KINDS = (
    "api_key", "circuit_breaker", "dead_letter", "job", "job_batch", "operation", "organization",
    "organization_member", "project", "queue", "retry_policy", "scheduled_job", "webhook_secret", "worker",
)  # fmt: skip
MOST_FIELDS = 12


@dataclass(frozen=True, slots=True)
class Change:
    """A field of the object before and after; None is "there was none"."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Row:
    """An entry with what it changed, and the page of its object if it has one here."""

    entry: AuditEntry
    project: str
    changes: Sequence[Change]
    n_more: int
    url: str


@require_safe
@member_view(needs=Role.ADMIN)
def audit_log(request: MemberRequest) -> HttpResponse:
    chosen = _chosen(request)
    page = page_by_id(request, _matching(request, chosen))
    projects = {row.pk: row for row in list_projects(request.actor, request.organization.pk)[:1_000]}
    context: dict[str, Any] = {
        "section": "audit_log",
        "page": page,
        "rows": [_row(request, entry, projects) for entry in page.rows],
        "chosen": chosen,
        "is_filtered": any(chosen.values()),
        "kinds": KINDS,
    }
    return respond(request, "orgs/audit_log.html", "orgs/_audit_log.html", context)


def _chosen(request: MemberRequest) -> dict[str, str]:
    given = {name: request.GET.get(name, "").replace("\x00", "").strip()[:100] for name in _FILTERS}
    given["kind"] = given["kind"] if given["kind"] in KINDS else ""
    return given


_FILTERS = ("actor", "action", "kind", "object", "project")


def _matching(request: MemberRequest, chosen: dict[str, str]) -> QuerySet[AuditEntry]:
    found = list_audit(request.organization.pk, chosen["kind"] or None, chosen["object"] or None)
    if chosen["actor"]:
        found = found.filter(Q(user__email__icontains=chosen["actor"]) | Q(api_key__name__icontains=chosen["actor"]))
    if chosen["action"]:
        found = found.filter(action__startswith=chosen["action"])
    return found.filter(project_id=request.project.pk) if chosen["project"] == "this" else found


def _row(request: MemberRequest, entry: AuditEntry, projects: dict[UUID, Project]) -> Row:
    before, after = entry.before or {}, entry.after or {}
    names = list(dict.fromkeys([*before, *after]))
    changes = [Change(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)]
    project = projects.get(entry.project_id) if entry.project_id else None
    url = ""
    target_id = id_or_none(entry.target_id)
    if project is not None and target_id is not None and entry.target_type in PAGES:
        try:
            url = reverse(PAGES[entry.target_type], args=[request.organization.slug, project.slug, target_id])
        except NoReverseMatch:
            url = ""
    return Row(entry, project.slug if project else "", changes[:MOST_FIELDS], max(0, len(changes) - MOST_FIELDS), url)
