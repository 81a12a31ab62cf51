"""Event webhooks in the settings: who is told what, and whether it arrives; everybody reads, admins write."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.models import NOTICES_QUEUE, EventSubscription, EventType
from jobs.selectors.alerts import get_subscription, list_subscriptions
from jobs.services.outgoing import send_test
from jobs.services.subscriptions import create_subscription, delete_subscription, update_subscription
from jobs.web.alert_forms import SubscriptionForm, seal_of, values_of_subscription
from orgs.audit import deed
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, of_project, path_in
from orgs.web.tabs import tabs_of
from orgs.webhook_secrets import are_calls_signed
from queues.models import Queue
from scheduler_project.lib.web.actions import act, fill
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.pages import back_to
from scheduler_project.lib.web.text import harmless

_FASTER = "Somebody changed this webhook since you opened it. Its values now are shown below."


@require_safe
@member_view()
def subscriptions(request: MemberRequest) -> HttpResponse:
    project_id = request.project.pk
    rows = [
        {"one": one, "state": _state_of(one), "labels": [EventType(type_).label for type_ in one.types]}
        for one in list_subscriptions(request.actor, project_id)
    ]
    context = {
        "section": "settings",
        "tabs": tabs_of(request, "event_webhooks"),
        "rows": rows,
        "is_signed": are_calls_signed(project_id),
        "notices": Queue.objects.filter(project_id=project_id, name=NOTICES_QUEUE, deleted_at=None).first(),
    }
    return render(request, "jobs/event_webhooks.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def new(request: MemberRequest) -> HttpResponse:
    if request.method != "POST":
        return _show(request, SubscriptionForm())
    form = SubscriptionForm(request.POST)

    def do() -> str:
        with deed(request.actor, "event_subscription.create") as doing:
            made = create_subscription(request.project, by=request.user.pk, **form.settings())
            doing.on(made)
        return f"Event webhook {harmless(made.name, 80)} is made. Send a test to see whether it arrives."

    return fill(request, form, do, then=_home(request)) or _show(request, form, status=422)


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def edit(request: MemberRequest, subscription_id: UUID) -> HttpResponse:
    found = _get(request, subscription_id)
    if request.method != "POST":
        return _show(request, SubscriptionForm(initial=values_of_subscription(found)), found)
    form = SubscriptionForm(request.POST)

    def do() -> str | HttpResponse:
        with transaction.atomic():
            current = get_subscription(request.actor, subscription_id, needs=Role.ADMIN, is_locked=True)
            values = values_of_subscription(current)
            if request.POST.get("seal") != seal_of(values):
                return _show(request, SubscriptionForm(initial=values), current, status=409, problem=_FASTER)
            with deed(request.actor, "event_subscription.update", current):
                update_subscription(current, **form.settings())
        return f"Event webhook {harmless(form.cleaned_data['name'], 80)} is changed."

    return fill(request, form, do, then=_home(request)) or _show(request, form, found, status=422)


@require_POST
@member_view(needs=Role.ADMIN)
def test(request: MemberRequest, subscription_id: UUID) -> HttpResponse:
    """Send one call that tells nothing; its job shows how it went."""
    job_id = send_test(_get(request, subscription_id))
    return back_to(path_in(request, "job", job_id))


@require_POST
@member_view(needs=Role.ADMIN)
def delete(request: MemberRequest, subscription_id: UUID) -> HttpResponse:
    found = _get(request, subscription_id)
    asked = Question(
        action="event_subscription.delete",
        target=str(subscription_id),
        title=f"Delete the event webhook {harmless(found.name, 100)}?",
        text="Its address hears of no more events. Deliveries that are under way still arrive.",
        button="Delete the webhook",
        back=_home(request),
    )

    def do() -> str:
        with deed(request.actor, "event_subscription.delete", found, is_end=True):
            delete_subscription(found)
        return f"Event webhook {harmless(found.name, 80)} is deleted."

    return act(request, do, back=_home(request), question=asked)


def _state_of(one: EventSubscription) -> tuple[str, str]:
    if not one.is_active:
        return "stopped", "Off"
    return ("failed", "Failing") if one.last_error else ("active", "On")


def _show(
    request: MemberRequest,
    form: SubscriptionForm,
    found: EventSubscription | None = None,
    *,
    status: int = 200,
    problem: str = "",
) -> HttpResponse:
    seal = request.POST.get("seal") if form.is_bound else seal_of(values_of_subscription(found)) if found else ""
    context = {
        "section": "settings", "tabs": tabs_of(request, "event_webhooks"), "form": form, "found": found, "seal": seal,
        "problem": problem, "fields": [form["name"], form["url"], form["is_active"]],
        "wanted": form["types"].value() or [],
    }  # fmt: skip
    return render(request, "jobs/event_webhook_form.html", context, status=status)


def _get(request: MemberRequest, subscription_id: UUID) -> EventSubscription:
    return of_project(request, get_subscription(request.actor, subscription_id, needs=Role.ADMIN), "event subscription")


def _home(request: MemberRequest) -> str:
    return path_in(request, "event_webhooks")
