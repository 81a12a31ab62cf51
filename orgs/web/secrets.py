"""Webhook secrets of the project: made, rotated and revoked; each is shown once, when it is made."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from orgs.audit import deed
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, path_in
from orgs.web.forms import OverlapForm
from orgs.web.keys import state_of
from orgs.web.tabs import shown_once, tabs_of
from orgs.webhook_secrets import MAX_USABLE, create_secret, get_secret, list_secrets, revoke_secret, rotate_secret
from scheduler_project.lib.web.actions import act
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.pages import back_to
from scheduler_project.lib.web.paging import page_by_id
from scheduler_project.lib.web.toasts import complain


@require_safe
@member_view(needs=Role.ADMIN)
def secrets(request: MemberRequest) -> HttpResponse:
    page = page_by_id(request, list_secrets(request.project.pk).select_related("created_by"))
    rows = []
    for secret in page.rows:
        glyph, word = state_of(secret, request.now)
        rows.append({"secret": secret, "glyph": glyph, "word": word, "is_usable": word in ("Good", "Ends soon")})
    context: dict[str, Any] = {
        "section": "settings",
        "tabs": tabs_of(request, "webhook_secrets"),
        "page": page,
        "rows": rows,
        "most": MAX_USABLE,
        "overlap": OverlapForm(),
    }
    return render(request, "orgs/webhook_secrets.html", context)


@require_POST
@member_view(needs=Role.ADMIN)
def new(request: MemberRequest) -> HttpResponse:
    def do() -> HttpResponse:
        with deed(request.actor, "webhook_secret.create") as doing:
            made = create_secret(request.project, by=request.user.pk)
            doing.on(made.row)
        return _once(request, "A webhook secret is made", made.secret)

    return act(request, do, back=_path(request))


@require_POST
@member_view(needs=Role.ADMIN)
def rotate(request: MemberRequest, secret_id: UUID) -> HttpResponse:
    """A new secret; the old one signs beside it until its end."""
    found, form = get_secret(request.project.pk, secret_id), OverlapForm(request.POST)
    if not form.is_valid():
        complain(request, "Choose when the old secret ends.")
        return back_to(_path(request))
    overlap_secs, here = form.cleaned_data["overlap_secs"], _path(request)
    asked = Question(
        action="webhook_secret.rotate",
        target=str(secret_id),
        title=f"Rotate {found.prefix}… without an overlap?",
        text="Calls carry no signature of the old secret any more, before a receiver can have the new one.",
        button="Rotate the secret",
        back=here,
    )

    def do() -> HttpResponse:
        with deed(request.actor, "webhook_secret.rotate", found) as doing:
            made = rotate_secret(found, overlap_secs=overlap_secs, by=request.user.pk)
            found.refresh_from_db(fields=["expires_at"])
            doing.says(new_secret_id=made.row.pk)
        return _once(request, "The new webhook secret", made.secret)

    return act(request, do, back=here, question=None if overlap_secs else asked)


@require_POST
@member_view(needs=Role.ADMIN)
def revoke(request: MemberRequest, secret_id: UUID) -> HttpResponse:
    found = get_secret(request.project.pk, secret_id)
    asked = Question(
        action="webhook_secret.revoke",
        target=str(secret_id),
        title=f"Revoke {found.prefix}…?",
        text="Calls are not signed with it any more, within seconds. Receivers that know only this one refuse them.",
        button="Revoke the secret",
        back=_path(request),
    )

    def do() -> str:
        with deed(request.actor, "webhook_secret.revoke", found):
            revoke_secret(found.pk)
            found.refresh_from_db(fields=["revoked_at"])
        return f"The webhook secret {found.prefix}… is revoked."

    return act(request, do, back=_path(request), question=asked)


def _once(request: MemberRequest, title: str, secret: str) -> HttpResponse:
    text = "Receivers check the signatures of webhook calls with it. It is stored encrypted."
    return shown_once(request, tab="webhook_secrets", title=title, text=text, secret=secret)


def _path(request: MemberRequest) -> str:
    return path_in(request, "webhook_secrets")
