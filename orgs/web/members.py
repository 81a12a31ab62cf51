"""Members of the organization: everybody sees them, owners change them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from orgs.audit import deed
from orgs.members import add_member, change_role, get_member, remove_member
from orgs.models import OrganizationMember, Role
from orgs.selectors import list_members
from orgs.web.access import MemberRequest, may, member_view, path_in
from orgs.web.forms import MemberForm
from orgs.web.tabs import tabs_of
from scheduler_project.lib.errors import ValidationFailed
from scheduler_project.lib.web.actions import act, fill
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.pages import back_to
from scheduler_project.lib.web.paging import page_by_id
from scheduler_project.lib.web.text import harmless
from scheduler_project.lib.web.toasts import say

#: What each role may do, besides all that those below it may.
MAY = (
    (Role.VIEWER, "sees everything of the project but keys, secrets and the audit log"),
    (Role.MEMBER, "submits, cancels and retries jobs, runs schedules, decides about dead letters"),
    (Role.ADMIN, "changes queues, schedules, policies, projects and keys; pauses and deletes; reads the audit log"),
    (Role.OWNER, "adds and removes members"),
)


@require_safe
@member_view()
def members(request: MemberRequest) -> HttpResponse:
    return _show(request)


@require_POST
@member_view(needs=Role.OWNER)
def add(request: MemberRequest) -> HttpResponse:
    form = MemberForm(request.POST)

    def do() -> str:
        with deed(request.actor, "member.add") as doing:
            doing.on(add_member(request.organization, **form.cleaned_data))
        return f"{harmless(form.cleaned_data['email'], 80)} is a member now."

    return fill(request, form, do, then=_path(request)) or _show(request, form, status=422)


@require_POST
@member_view(needs=Role.OWNER)
def set_role(request: MemberRequest, member_id: UUID) -> HttpResponse:
    found, role = get_member(request.organization, member_id), request.POST.get("role", "")
    before, here = found.role, _path(request)

    def do() -> HttpResponse:
        if role not in Role.values:
            raise ValidationFailed.of("role", f"is one of {', '.join(Role.values)}")
        with deed(request.actor, "member.change_role", found):
            change_role(found, role)
        # Who is no owner any more could not take it back.
        undo = {} if found.user_id == request.user.pk else {"undo": path_in(request, "member_role", member_id)}
        text = f"{harmless(found.user.email, 80)} is {Role(role).label.lower()} now."
        say(request, text, **undo, **({"role": before} if undo else {}))
        return back_to(here)

    return act(request, do, back=here)


@require_POST
@member_view(needs=Role.OWNER)
def remove(request: MemberRequest, member_id: UUID) -> HttpResponse:
    found, here = get_member(request.organization, member_id), _path(request)
    email, is_own = harmless(found.user.email, 80), found.user_id == request.user.pk
    asked = Question(
        action="member.remove",
        target=str(member_id),
        title=f"{'Leave' if is_own else f'Remove {email} from'} {harmless(request.organization.name, 80)}?",
        text="What was made stays. Access to all projects of the organization ends at once.",
        button="Leave the organization" if is_own else "Remove the member",
        back=here,
    )

    def do() -> str:
        with deed(request.actor, "member.remove", found, is_end=True):
            remove_member(found)
        return f"{email} is no member any more."

    return act(request, do, back=here, question=asked, then="/" if is_own else here)


def _show(request: MemberRequest, form: MemberForm | None = None, *, status: int = 200) -> HttpResponse:
    found = list_members(request.organization.pk)
    wanted = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    page = page_by_id(request, found.filter(user__email__icontains=wanted) if wanted else found)
    context: dict[str, Any] = {
        "section": "settings",
        "tabs": tabs_of(request, "members"),
        "page": page,
        "rows": [(member, Role(member.role).label) for member in page.rows],
        "wanted": wanted,
        "roles": [(role.value, role.label) for role in reversed(Role)],
        "matrix": [(role.label, text) for role, text in MAY],
        "form": form or MemberForm(),
        "may_own": may(request, Role.OWNER),
        "own_id": request.user.pk,
        "n_owners": OrganizationMember.objects.filter(organization=request.organization, role=Role.OWNER).count(),
    }
    return render(request, "orgs/members.html", context, status=status)


def _path(request: MemberRequest) -> str:
    return path_in(request, "members")
