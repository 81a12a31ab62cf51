"""Alerts in the settings: the rules, what fires, the history; everybody reads, admins write."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.models import Alert, AlertRule
from jobs.selectors.alerts import get_rule, list_alerts, list_rules, sentence_of
from jobs.services.alert_rules import create_rule, delete_rule, update_rule
from jobs.web.alert_forms import RuleForm, seal_of, values_of_rule
from orgs.audit import deed
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, of_project, path_in
from orgs.web.tabs import tabs_of
from queues.models import Queue
from scheduler_project.lib.web.actions import act, fill
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.paging import page_by_id
from scheduler_project.lib.web.text import harmless

MOST_QUEUES = 200
_FASTER = "Somebody changed this rule since you opened it. Its values now are shown below."
#: State -> glyph and word.
_GLYPHS = {"pending": ("retrying", "Pending"), "firing": ("failed", "Firing"), "resolved": ("completed", "Resolved")}


@require_safe
@member_view()
def rules(request: MemberRequest) -> HttpResponse:
    project_id = request.project.pk
    page = page_by_id(request, list_alerts(request.actor, project_id))
    found = list(list_rules(request.actor, project_id).select_related("queue"))
    open_ = dict(Alert.objects.filter(project_id=project_id).exclude(state="resolved").values_list("rule_id", "state"))
    context = {
        "section": "settings",
        "tabs": tabs_of(request, "alert_rules"),
        "rules": [{"rule": rule, "state": _state_of(rule, open_.get(rule.pk))} for rule in found],
        "page": page,
        "rows": [{"alert": one, "state": _GLYPHS[one.state], "text": sentence_of(one)} for one in page.rows],
    }
    return render(request, "jobs/alert_rules.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def new(request: MemberRequest) -> HttpResponse:
    if request.method != "POST":
        return _show(request, _form(request))
    form = _form(request, request.POST)

    def do() -> str:
        with deed(request.actor, "alert_rule.create") as doing:
            made = create_rule(request.project, by=request.user.pk, **form.settings())
            doing.on(made)
        return f"Alert rule {harmless(made.name, 80)} is made."

    return fill(request, form, do, then=_home(request)) or _show(request, form, status=422)


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def edit(request: MemberRequest, rule_id: UUID) -> HttpResponse:
    rule = _get(request, rule_id)
    if request.method != "POST":
        return _show(request, _form(request, initial=values_of_rule(rule), is_new=False), rule)
    form = _form(request, request.POST, is_new=False)

    def do() -> str | HttpResponse:
        with transaction.atomic():
            current = get_rule(request.actor, rule_id, needs=Role.ADMIN, is_locked=True)
            if request.POST.get("seal") != seal_of(values_of_rule(current)):
                fresh = _form(request, initial=values_of_rule(current), is_new=False)
                return _show(request, fresh, current, status=409, problem=_FASTER)
            with deed(request.actor, "alert_rule.update", current):
                update_rule(current, **form.settings())
        return f"Alert rule {harmless(form.cleaned_data['name'], 80)} is changed."

    return fill(request, form, do, then=_home(request)) or _show(request, form, rule, status=422)


@require_POST
@member_view(needs=Role.ADMIN)
def delete(request: MemberRequest, rule_id: UUID) -> HttpResponse:
    rule = _get(request, rule_id)
    asked = Question(
        action="alert_rule.delete",
        target=str(rule_id),
        title=f"Delete the alert rule {harmless(rule.name, 100)}?",
        text="Nobody is told any more. If it fires now, that is resolved; the history stays.",
        button="Delete the rule",
        back=_home(request),
    )

    def do() -> str:
        with deed(request.actor, "alert_rule.delete", rule, is_end=True):
            delete_rule(rule)
        return f"Alert rule {harmless(rule.name, 80)} is deleted."

    return act(request, do, back=_home(request), question=asked)


def _state_of(rule: AlertRule, state: str | None) -> tuple[str, str]:
    if not rule.is_enabled:
        return "stopped", "Off"
    return _GLYPHS[state] if state else ("active", "Good")


def _form(request: MemberRequest, *args: Any, **kwargs: Any) -> RuleForm:
    queues = Queue.objects.filter(project=request.project, deleted_at=None).order_by("name")[:MOST_QUEUES]
    return RuleForm(*args, queues=list(queues), **kwargs)


def _show(
    request: MemberRequest, form: RuleForm, rule: AlertRule | None = None, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    seal = request.POST.get("seal") if form.is_bound else seal_of(values_of_rule(rule)) if rule else ""
    context = {
        "section": "settings", "tabs": tabs_of(request, "alert_rules"), "form": form, "rule": rule, "seal": seal,
        "problem": problem,
    }  # fmt: skip
    return render(request, "jobs/alert_rule_form.html", context, status=status)


def _get(request: MemberRequest, rule_id: UUID) -> AlertRule:
    return of_project(request, get_rule(request.actor, rule_id, needs=Role.ADMIN), "alert rule")


def _home(request: MemberRequest) -> str:
    return path_in(request, "alert_rules")
