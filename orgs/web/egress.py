"""Where the webhooks of the organization may go: two lists that narrow what the installation allows."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from orgs.audit import deed
from orgs.egress import change_egress
from orgs.models import MAX_EGRESS_ENTRIES, Organization, Role
from orgs.selectors import list_audit
from orgs.web.access import MemberRequest, member_view, path_in
from orgs.web.forms import EgressForm, seal_of_lists
from orgs.web.tabs import tabs_of
from scheduler_project.lib.web.actions import fill

MOST_AUDIT = 10
_FASTER = "Somebody changed these lists since you opened them. What they are now is shown below."


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def egress(request: MemberRequest) -> HttpResponse:
    """The lists and the form over them; workers follow a change within seconds."""
    if request.method != "POST":
        return _show(request, _form_of(request.organization), request.organization)
    form = EgressForm(request.POST)

    def do() -> str | HttpResponse:
        with transaction.atomic():
            current = Organization.objects.select_for_update(no_key=True).get(pk=request.organization.pk)
            if request.POST.get("seal") != _seal_of(current):
                return _show(request, _form_of(current), current, status=409, problem=_FASTER)
            with deed(request.actor, "organization.change_egress", current):
                change_egress(current, **form.lists())
        return "The lists are changed; workers follow within seconds."

    return fill(request, form, do, then=path_in(request, "egress")) or _show(request, form, status=422)


def _show(
    request: MemberRequest,
    form: EgressForm,
    read: Organization | None = None,
    *,
    status: int = 200,
    problem: str = "",
) -> HttpResponse:
    context = {
        "section": "settings",
        "tabs": tabs_of(request, "egress"),
        "form": form,
        "seal": request.POST.get("seal") if read is None else _seal_of(read),
        "problem": problem,
        "most": MAX_EGRESS_ENTRIES,
        "audit": list_audit(request.organization.pk, "organization", str(request.organization.pk))[:MOST_AUDIT],
    }
    return render(request, "orgs/egress.html", context, status=status)


def _form_of(organization: Organization) -> EgressForm:
    lists: dict[str, Sequence[str]] = {
        "egress_allow": organization.egress_allow,
        "egress_deny": organization.egress_deny,
    }
    return EgressForm(initial={name: "\n".join(entries) for name, entries in lists.items()})


def _seal_of(organization: Organization) -> str:
    return seal_of_lists(organization.egress_allow, organization.egress_deny)
