"""What the pages of settings share: their tabs, and the page that shows a secret once."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from orgs.models import Role
from orgs.web.access import MemberRequest, may


class Tab(NamedTuple):
    """A page of the settings."""

    name: str
    label: str
    url: str
    is_current: bool


#: Url name, label, who may open it.
TABS = (
    ("settings", "Project", Role.VIEWER),
    ("members", "Members", Role.VIEWER),
    ("alert_rules", "Alerts", Role.VIEWER),
    ("event_webhooks", "Event webhooks", Role.VIEWER),
    ("api_keys", "API keys", Role.ADMIN),
    ("webhook_secrets", "Webhook secrets", Role.ADMIN),
    ("egress", "Egress", Role.ADMIN),
)


def tabs_of(request: MemberRequest, current: str) -> list[Tab]:
    """Those that the member may open."""
    return [
        Tab(name, label, reverse(name, args=slugs_of(request)), name == current)
        for name, label, needs in TABS
        if may(request, needs)
    ]


def shown_once(
    request: MemberRequest, *, tab: str, title: str, text: str, secret: str, more: tuple[str, str] | None = None
) -> HttpResponse:
    """The answer that carries a new secret. It is kept nowhere: not in the session, not in a redirect."""
    context = {
        "section": "settings", "tabs": tabs_of(request, tab), "title": title, "text": text, "secret": secret,
        "more": more, "back": reverse(tab, args=slugs_of(request)),
    }  # fmt: skip
    answer = render(request, "orgs/shown_once.html", context, status=201)
    answer["Cache-Control"] = "no-store"
    return answer


def slugs_of(request: MemberRequest) -> list[str]:
    """The arguments of every path below a project."""
    return [request.organization.slug, request.project.slug]
