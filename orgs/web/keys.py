"""API keys of the project: made, rotated and revoked; each is shown once, when it is made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from orgs.audit import deed
from orgs.models import ApiKey, Role
from orgs.selectors import get_api_key, list_api_keys
from orgs.services import create_api_key, revoke_api_key, rotate_api_key
from orgs.web.access import MemberRequest, member_view, path_in
from orgs.web.forms import KeyForm, OverlapForm
from orgs.web.tabs import shown_once, tabs_of
from scheduler_project.lib.web.actions import act, fill
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.pages import back_to
from scheduler_project.lib.web.paging import page_by_id
from scheduler_project.lib.web.text import harmless
from scheduler_project.lib.web.toasts import complain

SOON = timedelta(days=14)


@require_safe
@member_view(needs=Role.ADMIN)
def keys(request: MemberRequest) -> HttpResponse:
    return _show(request)


@require_POST
@member_view(needs=Role.ADMIN)
def new(request: MemberRequest) -> HttpResponse:
    form = KeyForm(request.POST)

    def do() -> HttpResponse:
        with deed(request.actor, "api_key.create") as doing:
            made = create_api_key(request.project, **form.settings(request.now), by=request.user.pk)
            doing.on(made.row)
        return _once(request, f"API key {harmless(made.row.name, 80)} is made", made.key)

    return fill(request, form, do) or _show(request, form, status=422)


@require_POST
@member_view(needs=Role.ADMIN)
def rotate(request: MemberRequest, key_id: UUID) -> HttpResponse:
    """A new secret for the same use. If the old one ends at once it asks: whoever has it is refused from then on."""
    found, form = get_api_key(request.project.pk, key_id), OverlapForm(request.POST)
    if not form.is_valid():
        complain(request, "Choose when the old key ends.")
        return back_to(_path(request))
    overlap_secs, here = form.cleaned_data["overlap_secs"], _path(request)
    asked = Question(
        action="api_key.rotate",
        target=str(key_id),
        title=f"Rotate {harmless(found.name, 80)} without an overlap?",
        text="The old key is refused at once, before anybody can have the new one.",
        button="Rotate the key",
        back=here,
    )

    def do() -> HttpResponse:
        with deed(request.actor, "api_key.rotate", found) as doing:
            made = rotate_api_key(found, overlap_secs=overlap_secs, by=request.user.pk)
            found.refresh_from_db()
            doing.says(new_key_id=made.row.pk)
        return _once(request, f"The new key of {harmless(made.row.name, 80)}", made.key)

    return act(request, do, back=here, question=None if overlap_secs else asked)


@require_POST
@member_view(needs=Role.ADMIN)
def revoke(request: MemberRequest, key_id: UUID) -> HttpResponse:
    found = get_api_key(request.project.pk, key_id)
    asked = Question(
        action="api_key.revoke",
        target=str(key_id),
        title=f"Revoke {harmless(found.name, 80)}?",
        text=f"Requests with {found.prefix}… are refused from now on. Nothing brings the key back.",
        button="Revoke the key",
        back=_path(request),
    )

    def do() -> str:
        with deed(request.actor, "api_key.revoke", found):
            revoke_api_key(found.pk)
            found.refresh_from_db()
        return f"The key {harmless(found.name, 80)} is revoked."

    return act(request, do, back=_path(request), question=asked)


def state_of(row: Any, now: Any) -> tuple[str, str]:
    """Glyph and word of a key or secret."""
    if row.revoked_at is not None:
        return "cancelled", "Revoked"
    if row.expires_at is None:
        return "active", "Good"
    if row.expires_at <= now:
        return "stopped", "Expired"
    return ("retrying", "Ends soon") if row.expires_at <= now + SOON else ("active", "Good")


def _show(request: MemberRequest, form: KeyForm | None = None, *, status: int = 200) -> HttpResponse:
    show = "all" if request.GET.get("show") == "all" else ""
    found = list_api_keys(request.project.pk).select_related("created_by")
    usable = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=request.now))
    page = page_by_id(request, found if show else found.filter(usable))
    context: dict[str, Any] = {
        "section": "settings",
        "tabs": tabs_of(request, "api_keys"),
        "page": page,
        "rows": [_row(key, request) for key in page.rows],
        "show": show,
        "form": form or KeyForm(),
        "is_adding": form is not None,
        "overlap": OverlapForm(),
    }
    return render(request, "orgs/api_keys.html", context, status=status)


def _row(key: ApiKey, request: MemberRequest) -> dict[str, Any]:
    glyph, word = state_of(key, request.now)
    return {"key": key, "glyph": glyph, "word": word, "is_usable": word in ("Good", "Ends soon")}


def _once(request: MemberRequest, title: str, key: str) -> HttpResponse:
    text = "Send it as the header X-API-Key. Only its hash is stored."
    return shown_once(request, tab="api_keys", title=title, text=text, secret=key)


def _path(request: MemberRequest) -> str:
    return path_in(request, "api_keys")
