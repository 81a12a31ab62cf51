"""Retry policies: the list, one policy, the editor with its live preview, and the guarded removal."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.models import ScheduledJob
from orgs.audit import deed
from orgs.models import Role
from orgs.selectors import list_audit
from orgs.web.access import MemberRequest, member_view, of_project, path_in
from queues.models import Queue, RetryPolicy
from queues.selectors import get_retry_policy, list_retry_policies
from queues.services import create_retry_policy, delete_retry_policy, update_retry_policy
from queues.web.policy_form import PolicyForm, seal_of, values_of
from queues.web.policy_words import plan_of, rule_of
from scheduler_project.lib.web.actions import act, fill
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.pages import back_to, respond
from scheduler_project.lib.web.paging import page_by_id
from scheduler_project.lib.web.text import harmless
from scheduler_project.lib.web.toasts import say

MOST_AUDIT, MOST_USERS = 10, 50
_FASTER = "Somebody changed this policy since you opened it. Its values now are shown below."


@require_safe
@member_view()
def retry_policies(request: MemberRequest) -> HttpResponse:
    wanted = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    found = list_retry_policies(request.actor, request.project.pk)
    page = page_by_id(request, found.filter(name__icontains=wanted) if wanted else found)
    ids = [policy.pk for policy in page.rows]
    queues = Queue.objects.filter(default_retry_policy_id__in=ids, deleted_at=None)
    schedules = ScheduledJob.objects.filter(retry_policy_id__in=ids)
    by_queue = dict(queues.values_list("default_retry_policy_id").annotate(n=Count("pk")).order_by())
    by_schedule = dict(schedules.values_list("retry_policy_id").annotate(n=Count("pk")).order_by())
    rows = [
        {"policy": one, "plan": plan_of(rule_of(one)), "queues": by_queue.get(one.pk, 0),
         "schedules": by_schedule.get(one.pk, 0)}
        for one in page.rows
    ]  # fmt: skip
    context = {"section": "retry_policies", "page": page, "rows": rows, "wanted": wanted}
    return respond(request, "queues/retry_policies.html", "queues/_retry_policies.html", context)


@require_safe
@member_view()
def retry_policy(request: MemberRequest, policy_id: UUID) -> HttpResponse:
    found = _get(request, policy_id)
    schedules = ScheduledJob.objects.filter(retry_policy=found).only("id", "name").order_by("name")
    context = {
        "section": "retry_policies",
        "policy": found,
        "plan": plan_of(rule_of(found)),
        "queues": list(found.queues.filter(deleted_at=None).only("id", "name").order_by("name")[:MOST_USERS]),
        "schedules": list(schedules[:MOST_USERS]),
        "audit": list_audit(request.organization.pk, "retry_policy", str(policy_id))[:MOST_AUDIT],
    }
    return render(request, "queues/retry_policy.html", context)


@require_POST
@member_view()
def preview(request: MemberRequest) -> HttpResponse:
    """The fragment that the editor asks for while somebody types."""
    return render(request, "queues/_policy_plan.html", _previewed(PolicyForm(request.POST)))


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def new(request: MemberRequest) -> HttpResponse:
    if request.method != "POST":
        return _show(request, PolicyForm())
    form = PolicyForm(request.POST)
    if "preview" in request.POST:
        return _show(request, form)

    def do() -> HttpResponse:
        with deed(request.actor, "retry_policy.create") as doing:
            made = create_retry_policy(request.project, **form.settings())
            doing.on(made)
        say(request, f"Retry policy {harmless(made.name, 80)} is made. Choose it for a queue to use it.")
        return back_to(_path(request, made.pk))

    return fill(request, form, do) or _show(request, form, status=422)


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def edit(request: MemberRequest, policy_id: UUID) -> HttpResponse:
    found = _get(request, policy_id)
    if request.method != "POST":
        return _show(request, PolicyForm(initial=values_of(found)), found)
    form = PolicyForm(request.POST)
    if "preview" in request.POST:
        return _show(request, form, found)

    def do() -> str | HttpResponse:
        if not _save(request, policy_id, form):
            fresh = _get(request, policy_id)
            return _show(request, PolicyForm(initial=values_of(fresh)), fresh, status=409, problem=_FASTER)
        name = harmless(form.cleaned_data["name"], 80)
        return f"Retry policy {name} is changed, for attempts that end from now on."

    done = fill(request, form, do, then=_path(request, policy_id))
    return done or _show(request, form, found, status=422)


@require_POST
@member_view(needs=Role.ADMIN)
def delete(request: MemberRequest, policy_id: UUID) -> HttpResponse:
    found = _get(request, policy_id)
    asked = Question(
        action="retry_policy.delete",
        target=str(policy_id),
        title=f"Delete {harmless(found.name, 100)}?",
        text="It can only go while no queue, schedule or job, finished ones too, uses it.",
        button="Delete the policy",
        back=_path(request, policy_id),
        must_type=found.name,
    )

    def do() -> str:
        with deed(request.actor, "retry_policy.delete", found, is_end=True):
            delete_retry_policy(found)
        return f"Retry policy {harmless(found.name, 80)} is deleted."

    then = path_in(request, "retry_policies")
    return act(request, do, back=_path(request, policy_id), question=asked, then=then)


def _save(request: MemberRequest, policy_id: UUID, form: PolicyForm) -> bool:
    """Change it; false if it is no longer what the person saw."""
    with transaction.atomic():
        current = get_retry_policy(request.actor, policy_id, needs=Role.ADMIN, is_locked=True)
        if request.POST.get("seal") != seal_of(current):
            return False
        with deed(request.actor, "retry_policy.update", current):
            update_retry_policy(current, **form.settings())
    return True


def _show(
    request: MemberRequest, form: PolicyForm, found: RetryPolicy | None = None, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    context: dict[str, Any] = {
        "section": "retry_policies",
        "form": form,
        "policy": found,
        "seal": request.POST.get("seal") if form.is_bound else seal_of(found) if found else "",
        "problem": problem,
        **_previewed(form if form.is_bound else PolicyForm(values_of(found) if found else _first_values())),
    }
    return render(request, "queues/policy_form.html", context, status=status)


def _previewed(form: PolicyForm) -> dict[str, Any]:
    form.is_valid()
    rule = form.rule()
    return {"plan": None if rule is None else plan_of(rule)}


def _first_values() -> dict[str, Any]:
    return {name: field.initial for name, field in PolicyForm.base_fields.items()}


def _get(request: MemberRequest, policy_id: UUID) -> RetryPolicy:
    """The policy of this very project; the role was checked before."""
    return of_project(request, get_retry_policy(request.actor, policy_id, needs=Role.VIEWER), "retry policy")


def _path(request: MemberRequest, policy_id: UUID) -> str:
    return path_in(request, "retry_policy", policy_id)
