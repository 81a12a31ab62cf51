"""Ways in: short paths lead to the project used last; who has none yet is led to his first job; and the palette."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_http_methods, require_safe

from jobs.models import Job, JobBatch, ScheduledJob
from jobs.web.shell import navigation
from orgs.access import Person
from orgs.audit import deed
from orgs.models import Project
from orgs.selectors import list_projects
from orgs.services import create_organization, create_project
from orgs.web.access import MemberRequest, member_view, path_in
from queues.models import Queue, RetryPolicy
from queues.services import create_queue
from scheduler_project.lib.errors import DomainError
from scheduler_project.lib.web.paging import id_or_none
from scheduler_project.lib.web.viewer import PROJECT

MOST_SUGGESTED = 6
_FIRST_CURL = (
    "curl -X POST {} -H 'X-API-Key: {}' -H 'Content-Type: application/json' "
    """-d '{{"queue": "default", "job_type": "test.echo", "payload": {{"hello": "world"}}}}'"""
)


@login_required
@require_safe
def to_project(request: HttpRequest, page: str) -> HttpResponse:
    """To a page of the project used last, or of the first one."""
    user = request.user
    projects = list_projects(Person(user.pk)).select_related("organization")  # type: ignore[arg-type]
    org_slug, _, slug = request.COOKIES.get(PROJECT, "").partition("/")
    found = projects.filter(organization__slug=org_slug, slug=slug).first() or projects.order_by("id").first()
    if found is None:
        return redirect("welcome")
    try:
        return redirect(reverse(page, args=[found.organization.slug, found.slug]))
    except NoReverseMatch:
        return redirect("dashboard", found.organization.slug, found.slug)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest) -> HttpResponse:
    """A new organization with its first project and queue; its key is shown this once."""
    problem = ""
    if request.method == "POST":
        try:
            project, key = _begin(request)
            context = {
                "new": project,
                "key": key,
                "curl": _FIRST_CURL.format(request.build_absolute_uri("/api/jobs"), key),
            }
            return render(request, "jobs/first_job.html", context, status=201)
        except DomainError as error:
            problem = error.message
    return render(request, "jobs/welcome.html", {"problem": problem}, status=422 if problem else 200)


def _begin(request: HttpRequest) -> tuple[Project, str]:
    actor = Person(request.user.pk)  # type: ignore[arg-type]
    with deed(actor, "organization.create") as founding:
        organization = create_organization(name=request.POST.get("organization", ""), by=actor.user_id)
        founding.on(organization)
        with deed(actor, "project.create") as doing:
            project, shown = create_project(organization, name=request.POST.get("project", ""), by=actor.user_id)
            doing.on(project)
        create_queue(project, name="default")
    return project, shown.key


@require_safe
@member_view()
def first_arrival(request: MemberRequest) -> HttpResponse:
    """Has the first job arrived? A live region."""
    queues = Queue.objects.filter(project=request.project).values_list("pk", flat=True)[:100]
    job = Job.objects.filter(queue_id__in=list(queues)).without_payload().order_by("-id").first()
    return render(request, "jobs/_first_arrival.html", {"job": job, "new": request.project})


@require_safe
@member_view()
def jump(request: MemberRequest) -> HttpResponse:
    """Suggestions: pages; queues, schedules, batches and policies by name; a pasted job id; a search for jobs."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    items = [(item.url, item.name, item.label, "page") for item in navigation(request, {}) if _fits(item.label, text)]
    if text:
        items += [
            (path_in(request, page, row.pk), glyph, row.name, kind)
            for model, page, glyph, kind in _NAMED
            for row in _called(model, request.project.pk, text)
        ]
        items.append((f"{path_in(request, 'jobs')}?{urlencode({'q': text})}", "search", text, "search the jobs"))
    job_id = id_or_none(text)
    if job_id and Job.objects.filter(pk=job_id, project=request.project).exists():
        items.insert(0, (path_in(request, "job", job_id), "jobs", str(job_id), "job"))
    return render(request, "jobs/_jump.html", {"items": items, "text": text})


#: What is found by its name: the model, its page, the glyph, and the word for it.
_NAMED: tuple[tuple[Any, str, str, str], ...] = (
    (Queue, "queue", "queues", "queue"),
    (ScheduledJob, "scheduled_job", "scheduled_jobs", "schedule"),
    (JobBatch, "batch", "batches", "batch"),
    (RetryPolicy, "retry_policy", "retry_policies", "retry policy"),
)


def _called(model: Any, project_id: UUID, text: str) -> Any:
    rows = model.objects.filter(project=project_id, name__icontains=text).only("pk", "name")
    alive = rows.filter(deleted_at=None) if model is Queue else rows
    # The newest: batches are many, and no index orders them by name.
    return alive.order_by("-pk" if model is JobBatch else "name")[:MOST_SUGGESTED]


def _fits(label: str, text: str) -> bool:
    return text.lower() in label.lower()
