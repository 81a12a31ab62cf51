"""Dead letters: what failed for good, grouped by what looks alike, and what is decided about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from django.views.decorators.http import require_POST, require_safe

from dlq.grouping import MOST_GROUPED, group, open_letters
from dlq.models import DeadLetter
from dlq.selectors import get_letter
from jobs.services.dead_letters import resolve_letter
from jobs.services.operations import CAREFUL, MAX_CANARY, MAX_PACE, NewOperation, prepare, start
from orgs.audit import deed
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, of_project, path_in
from queues.selectors import queue_names
from scheduler_project.lib.sealed_json import masked
from scheduler_project.lib.web.actions import act
from scheduler_project.lib.web.care import CareForm
from scheduler_project.lib.web.confirm import Question, unless_confirmed
from scheduler_project.lib.web.pages import back_to, own_path, respond
from scheduler_project.lib.web.paging import id_or_none, page_by_id
from scheduler_project.lib.web.toasts import complain, say_and_link

#: What a person decides -> what an operation calls it, and how it is said.
DECISIONS = {
    "requeued": ("redrive", "Queue again", "is queued again", "are queued again"),
    "discarded": ("discard", "Discard", "is discarded", "are discarded"),
}
MOST_SAMPLES = 3


@require_safe
@member_view()
def letters(request: MemberRequest) -> HttpResponse:
    """Groups of open letters; with a filter, or on request, the letters themselves."""
    view = request.GET.get("view", "groups")
    context: dict[str, Any] = {"section": "dead_letter", "view": view, "most": MOST_GROUPED}
    context |= _filters(request)
    if view == "list":
        context["queues"] = queue_names(request.project.pk)
        found = _matching(request).select_related("queue", "resolved_by").defer("payload_snapshot")
        context["page"] = page_by_id(request, found)
    else:
        grouped = group(open_letters(request.project.pk))
        chosen = grouped.of(request.GET.get("group", ""))
        context |= {"grouped": grouped, "chosen": chosen}
        if chosen is not None:
            shown = DeadLetter.objects.filter(pk__in=chosen.ids[:50]).select_related("queue", "resolved_by")
            context["rows"] = shown.defer("payload_snapshot").order_by("-id")
    return respond(request, "dlq/letters.html", "dlq/_letters.html", context)


@require_safe
@member_view()
def letter(request: MemberRequest, letter_id: UUID) -> HttpResponse:
    found = _get(request, letter_id, Role.VIEWER)
    context = {"section": "dead_letter", "letter": found, "payload": masked(found.payload_snapshot)}
    return respond(request, "dlq/letter.html", "dlq/_letter.html", context)


@require_POST
@member_view(needs=Role.MEMBER)
def resolve(request: MemberRequest, letter_id: UUID) -> HttpResponse:
    """Decide about one letter. Discarding asks first: nothing brings the job back."""
    found, decision = _get(request, letter_id, Role.MEMBER), _decision(request)
    here = path_in(request, "letter", letter_id)
    asked = Question(
        action="dead_letter.discard",
        target=str(letter_id),
        title="Discard this dead letter?",
        text=f"{found.job_type} stays failed. The letter is kept as resolved, with your name.",
        button="Discard",
        back=here,
    )

    def do() -> str:
        with deed(request.actor, "dead_letter.resolve", found) as doing:
            job_id = resolve_letter(found, decision, by=request.user.pk)
            doing.says(action=decision, job_id=job_id)
        return f"{found.job_type} {DECISIONS[decision][2]}."

    return act(request, do, back=here, question=asked if decision == "discarded" else None)


@require_POST
@member_view(needs=Role.MEMBER)
def resolve_many(request: MemberRequest) -> HttpResponse:
    """Decide about selected letters, a group, or all that match: as an operation that the scheduler carries out."""
    decision = _decision(request)
    action, verb, _, done = DECISIONS[decision]
    here = own_path(request, request.POST.get("next", ""), path_in(request, "dead_letter"))
    new = _wanted(request, action)
    if new is None:
        complain(request, "Select at least one letter.")
        return back_to(here)
    form = CareForm(request.POST, most_canary=MAX_CANARY, most_pace=MAX_PACE) if action in CAREFUL else None
    operation, estimate = prepare(request.project, replace(new, **form.care()) if form else new)
    least = "at least " if estimate.is_capped else ""
    asked = Question(
        action=f"dead_letter.{action}",
        target=[new.action, dict(new.filter), [str(id_) for id_ in new.ids or ()]],
        title=f"{verb} {least}{estimate.count:,} dead letters?",
        text=f"{least.capitalize()}{estimate.count:,} open letters {done}. Letters that come later are left alone.",
        button=verb,
        back=here,
        samples=[f"{row['job_type']} {row['job_id']}" for row in estimate.sample[:MOST_SAMPLES]],
        form=form,
    )
    if estimate.count == 0:
        complain(request, "None of them is open any more.")
        return back_to(here)
    if (page := unless_confirmed(request, asked)) is not None:
        return page
    with deed(request.actor, f"dead_letter.{action}") as doing:
        doing.on(start(operation, by=request.user.pk, api_key_id=None))
    text = f"{least.capitalize()}{estimate.count:,} dead letters {done}, one step after the other."
    say_and_link(request, text, path_in(request, "operation", operation.pk), "Watch it")
    return back_to(here)


def _wanted(request: MemberRequest, action: str) -> NewOperation | None:
    if request.POST.get("all"):
        chosen = {
            name: value for name, value in _filters(request).items() if value and name in ("queue_id", "job_type")
        }
        return NewOperation(action=action, filter=chosen)
    if key := request.POST.get("group"):
        found = group(open_letters(request.project.pk)).of(key)
        ids = [] if found is None else found.ids
    else:
        ids = [id_ for text in request.POST.getlist("ids")[:MOST_GROUPED] if (id_ := id_or_none(text)) is not None]
    # Only letters of this project: ids come from outside.
    mine = list(open_letters(request.project.pk).filter(pk__in=ids).values_list("pk", flat=True))
    return NewOperation(action=action, filter={}, ids=mine) if mine else None


def _matching(request: MemberRequest) -> QuerySet[DeadLetter]:
    chosen = _filters(request)
    found = DeadLetter.objects.filter(project_id=request.project.pk).order_by("-id")
    if chosen["resolved"] != "all":
        found = found.filter(resolved=chosen["resolved"] == "yes")
    if chosen["queue_id"]:
        found = found.filter(queue_id=chosen["queue_id"])
    return found.filter(job_type=chosen["job_type"]) if chosen["job_type"] else found


def _filters(request: MemberRequest) -> dict[str, Any]:
    given = request.POST if request.method == "POST" else request.GET
    resolved = given.get("resolved", "no")
    return {
        "resolved": resolved if resolved in ("no", "yes", "all") else "no",
        "queue_id": id_or_none(given.get("queue", "")),
        "job_type": given.get("type", "").replace("\x00", "").strip()[:200],
    }


def _decision(request: MemberRequest) -> str:
    given = request.POST.get("decision", "")
    return given if given in DECISIONS else "requeued"


def _get(request: MemberRequest, letter_id: UUID, needs: Role) -> DeadLetter:
    return of_project(request, get_letter(request.actor, letter_id, needs=needs), "dead letter")
