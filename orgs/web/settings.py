"""Settings of a project: what it is called, how long it keeps jobs, its sisters, its end."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from jobs.services.closing import delete_project
from orgs.audit import deed
from orgs.models import Project, Role
from orgs.selectors import list_audit, list_projects
from orgs.services import create_project, update_project
from orgs.web.access import MemberRequest, member_view, path_in
from orgs.web.forms import NewProjectForm, ProjectForm, seal_of
from orgs.web.tabs import shown_once, tabs_of
from scheduler_project.lib.web.actions import act, fill
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.text import harmless

MOST_PROJECTS, MOST_AUDIT = 200, 10
_FASTER = "Somebody changed this project since you opened it. Its values now are shown below."


@require_safe
@member_view()
def project(request: MemberRequest) -> HttpResponse:
    return _show(request)


@require_POST
@member_view(needs=Role.ADMIN)
def edit(request: MemberRequest) -> HttpResponse:
    form = ProjectForm(request.POST)

    def do() -> str | HttpResponse:
        with transaction.atomic():
            current = Project.objects.select_for_update(no_key=True).get(pk=request.project.pk)
            if request.POST.get("seal") != seal_of(current):
                request.project.name, request.project.retention_days = current.name, current.retention_days
                return _show(request, status=409, problem=_FASTER)
            with deed(request.actor, "project.update", current):
                update_project(current, **form.cleaned_data)
        return "The project is changed."

    return fill(request, form, do, then=path_in(request, "settings")) or _show(request, form, status=422)


@require_POST
@member_view(needs=Role.ADMIN)
def new(request: MemberRequest) -> HttpResponse:
    """A project beside this one, in the same organization; its first key is shown this once."""
    form = NewProjectForm(request.POST, prefix="new")

    def do() -> HttpResponse:
        with deed(request.actor, "project.create") as doing:
            made, shown = create_project(request.organization, **form.cleaned_data, by=request.user.pk)
            doing.on(made)
        return shown_once(
            request,
            tab="settings",
            title=f"Project {harmless(made.name, 100)} is made",
            text="This is its first API key. It may do everything in the project.",
            secret=shown.key,
            more=("To its dashboard", reverse("dashboard", args=[request.organization.slug, made.slug])),
        )

    return fill(request, form, do) or _show(request, new_form=form, status=422)


@require_POST
@member_view(needs=Role.ADMIN)
def delete(request: MemberRequest) -> HttpResponse:
    found, here = request.project, path_in(request, "settings")
    asked = Question(
        action="project.delete",
        target=str(found.pk),
        title=f"Delete the project {harmless(found.name, 100)}?",
        text="Its queues go with it, and its API keys are refused from now on. It can only go once all its jobs have "
        "ended. Nothing brings it back.",
        button="Delete the project",
        back=here,
        must_type=found.slug,
    )

    def do() -> str:
        with deed(request.actor, "project.delete", found, is_end=True):
            delete_project(found)
        return f"The project {harmless(found.name, 80)} is deleted."

    return act(request, do, back=here, question=asked, then="/")


def _show(
    request: MemberRequest,
    form: ProjectForm | None = None,
    new_form: NewProjectForm | None = None,
    *,
    status: int = 200,
    problem: str = "",
) -> HttpResponse:
    found = request.project
    sisters = list_projects(request.actor, request.organization.pk).order_by("name")
    first = {"name": found.name, "retention_days": found.retention_days}
    context: dict[str, Any] = {
        "section": "settings",
        "tabs": tabs_of(request, "settings"),
        "form": form or ProjectForm(initial=first),
        "new_form": new_form or NewProjectForm(prefix="new"),
        "is_adding": new_form is not None,
        "seal": request.POST.get("seal") if form is not None else seal_of(found),
        "problem": problem,
        "sisters": sisters[:MOST_PROJECTS],
        "installation": {
            "jobs": settings.RETENTION_DAYS, "logs": settings.LOG_RETENTION_DAYS,
            "archive": settings.ARCHIVE_RETENTION_DAYS,
        },
        "audit": list_audit(request.organization.pk, "project", str(found.pk))[:MOST_AUDIT],
    }  # fmt: skip
    return render(request, "orgs/settings.html", context, status=status)
