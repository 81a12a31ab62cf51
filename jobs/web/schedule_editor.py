"""Making and changing a schedule, with a live preview; without a script a button asks for it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from jobs.models import ScheduledJob
from jobs.selectors.schedules import get_schedule
from jobs.services import schedules as service
from jobs.web.schedule_form import ScheduleForm, seal_of, values_of
from jobs.web.schedule_words import Preview, preview_of
from jobs.web.schedules import get, path_of
from orgs.audit import deed
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view
from scheduler_project.lib.web.actions import fill
from scheduler_project.lib.web.pages import back_to
from scheduler_project.lib.web.text import harmless
from scheduler_project.lib.web.toasts import say
from scheduler_project.lib.web.viewer import zone_of

GROUPS = (
    ("When", ("cron_expression", "timezone", "run_once_at")),
    ("What runs", ("queue", "job_type", "retry_policy", "payload_template")),
    ("When it can not run on time", ("overlap_policy", "misfire_policy", "misfire_grace_secs", "misfire_cap")),
    ("When the clocks change", ("gap_policy", "repeat_policy")),
    ("Limits", ("starts_at", "ends_at", "max_fires", "jitter_secs", "timeout_s")),
)
_FASTER = "Somebody changed this schedule since you opened it. Its values now are shown below."


@require_POST
@member_view()
def preview(request: MemberRequest) -> HttpResponse:
    """The fragment that the editor asks for while somebody types."""
    form = ScheduleForm(request.project.pk, request.POST)
    form.is_valid()
    return render(request, "jobs/_schedule_preview.html", _previewed(request, form))


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def new(request: MemberRequest) -> HttpResponse:
    if request.method != "POST":
        own = zone_of(request)
        blank = {"timezone": own if "/" in own else "UTC", "queue": request.GET.get("queue", "")}
        return _show(request, ScheduleForm(request.project.pk, initial=blank))
    form = ScheduleForm(request.project.pk, request.POST)
    if "preview" in request.POST:
        form.is_valid()
        return _show(request, form)

    def do() -> HttpResponse:
        with deed(request.actor, "scheduled_job.create") as doing:
            made = service.create_schedule(form.cleaned_data["queue"], **form.settings())
            made.refresh_from_db()
            doing.on(made)
        say(request, f"Schedule {harmless(made.name, 80)} is made{_next_of(made)}.")
        return back_to(path_of(request, made.pk))

    return fill(request, form, do) or _show(request, form, status=422)


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def edit(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    found = get(request, schedule_id)
    if request.method != "POST":
        return _show(request, ScheduleForm(request.project.pk, schedule=found), found)
    form = ScheduleForm(request.project.pk, request.POST, schedule=found)
    if "preview" in request.POST:
        form.is_valid()
        return _show(request, form, found)

    def do() -> str | HttpResponse:
        changed = _save(request, found, form)
        if changed is None:
            fresh = get(request, schedule_id)
            return _show(request, ScheduleForm(request.project.pk, schedule=fresh), fresh, status=409, problem=_FASTER)
        return f"Schedule {harmless(changed.name, 80)} is changed{_next_of(changed)}."

    done = fill(request, form, do, then=path_of(request, schedule_id))
    return done or _show(request, form, found, status=422)


def _save(request: MemberRequest, found: ScheduledJob, form: ScheduleForm) -> ScheduledJob | None:
    """The changed schedule; None if it is no longer what the person saw."""
    with transaction.atomic():
        current = get_schedule(request.actor, found.pk, needs=Role.ADMIN, is_locked=True)
        if request.POST.get("seal") != seal_of(current):
            return None
        changes = form.changes(current)
        queue = form.cleaned_data["queue"]
        with deed(request.actor, "scheduled_job.update", current) as doing:
            changed = service.update_schedule(found.pk, queue=queue, **changes)
            doing.on(changed)
    return changed


def _next_of(schedule: ScheduledJob) -> str:
    at = schedule.next_run_at
    return f"; it runs next {timezone.localtime(at):%a %d %b %Y, %H:%M %Z}" if at else ""


def _show(
    request: MemberRequest, form: ScheduleForm, found: ScheduledJob | None = None, *, status: int = 200,
    problem: str = "",
) -> HttpResponse:  # fmt: skip
    context: dict[str, Any] = {
        "section": "scheduled_jobs",
        "form": form,
        "name_field": [form["name"]],
        "groups": [(title, [form[name] for name in names]) for title, names in GROUPS],
        "schedule": found,
        "seal": request.POST.get("seal") if form.is_bound else seal_of(found) if found else "",
        "problem": problem,
        **_previewed(request, form, found),
    }
    return render(request, "jobs/schedule_form.html", context, status=status)


def _previewed(request: MemberRequest, form: ScheduleForm, found: ScheduledJob | None = None) -> dict[str, Any]:
    """What the form's settings would fire; those of a stored schedule while nothing was typed."""
    viewer = zone_of(request)
    if not form.is_bound and found is None:
        shown = Preview(problem="Type an expression to see when it fires.")
    else:
        checked = form
        if not form.is_bound and found is not None:
            checked = ScheduleForm(request.project.pk, values_of(found), schedule=found)
            checked.is_valid()
        shown = preview_of(checked, viewer, request.now)
    zone = form["timezone"].value() or "UTC"
    return {"preview": shown, "schedule_zone": zone, "viewer_zone": viewer}
