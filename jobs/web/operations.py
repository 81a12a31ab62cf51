"""Operations: the list, one operation's page with its progress, and the abort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import HttpResponse
from django.views.decorators.http import require_POST, require_safe

from jobs.models import Operation
from jobs.selectors.operations import canary_jobs, canary_state, get_operation, is_about_letters, list_operations
from jobs.services.operations import UNENDED, abort
from jobs.web.operation_words import care_of, sentence_of
from orgs.audit import deed
from orgs.models import Role
from orgs.selectors import list_audit
from orgs.web.access import MemberRequest, member_view, of_project, path_in
from queues.models import Queue
from scheduler_project.lib.web.actions import act
from scheduler_project.lib.web.charts import distribution
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.pages import back_to, respond
from scheduler_project.lib.web.paging import page_by_id
from scheduler_project.lib.web.toasts import complain

#: Value of ``show`` -> word and states.
SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "": ("All", ()),
    "unended": ("Under way", tuple(UNENDED)),
    "completed": ("Completed", (Operation.State.COMPLETED,)),
    "aborted": ("Aborted", (Operation.State.ABORTED,)),
    "stopped": ("Stopped", (Operation.State.STOPPED,)),
}
MOST_AUDIT = 10
#: How an operation's state is drawn: the states that jobs have are those that have a glyph.
GLYPHS = {
    "pending": "scheduled",
    "running": "running",
    "completed": "completed",
    "aborted": "cancelled",
    "stopped": "failed",
}
#: What an operation that is under way is doing, by where its canary is.
_AT = {"pending": "queues its canary again", "waiting": "waits for its canary"}


@dataclass(frozen=True, slots=True)
class Row:
    """An operation as the pages show it; ``expected`` is None while nobody can know how many rows there are."""

    operation: Operation
    sentence: str
    glyph: str

    @classmethod
    def of(cls, operation: Operation, names: dict[str, str]) -> Row:
        """With the queue's name in its sentence."""
        is_listed: bool = getattr(operation, "is_listed")  # noqa: B009 - an annotation, which no type declares
        return cls(operation, sentence_of(operation, names, is_listed=is_listed), GLYPHS[operation.state])

    @property
    def is_unended(self) -> bool:
        """Does the scheduler still work on it?"""
        return self.operation.state in UNENDED

    @property
    def care(self) -> str:
        """How carefully, in words; empty if as fast as it goes."""
        return care_of(self.operation)

    @property
    def doing(self) -> str:
        """What it is at, while it is under way."""
        one = self.operation
        if one.state == Operation.State.PENDING:
            return "waits for the scheduler"
        return _AT.get(canary_state(one) or "", "at its pace" if one.pace else "step by step")

    @property
    def expected(self) -> int | None:
        """How many rows there will have been."""
        one = self.operation
        if one.state == Operation.State.COMPLETED:
            return one.matched
        return None if one.is_estimate_capped else max(one.estimate, one.matched)


@require_safe
@member_view()
def operations(request: MemberRequest) -> HttpResponse:
    show = request.GET.get("show", "")
    show = show if show in SHOWN else ""
    action = request.GET.get("action", "")
    action = action if action in Operation.Action.values else ""
    found = list_operations(request.actor, request.project.pk).select_related("created_by", "api_key")
    found = found.annotate(is_listed=Q(ids__isnull=False))
    chosen = Q(state__in=SHOWN[show][1]) if show else Q()
    page = page_by_id(request, found.filter(chosen, **({"action": action} if action else {})))
    names = _queue_names(request, page.rows)
    context = {
        "section": "operations",
        "page": page,
        "rows": [Row.of(operation, names) for operation in page.rows],
        "show": show,
        "shown": [(name, word) for name, (word, _) in SHOWN.items()],
        "action": action,
        "actions": Operation.Action.choices,
    }
    return respond(request, "jobs/operations.html", "jobs/_operations.html", context)


@require_safe
@member_view()
def operation(request: MemberRequest, operation_id: UUID) -> HttpResponse:
    found = _get(request, operation_id, Role.VIEWER)
    context: dict[str, Any] = {
        "section": "operations",
        "operation": found,
        "row": (row := Row.of(found, _queue_names(request, [found]))),
        "parts": _parts(row),
        "canary": canary_jobs(found),
        "canary_state": canary_state(found),
        "is_about_letters": is_about_letters(found.action),
        "n_ids": None if found.ids is None else len(found.ids),
        "audit": list_audit(request.organization.pk, "operation", str(operation_id))[:MOST_AUDIT],
        "took": (found.ended_at or request.now) - found.started_at if found.started_at else None,
    }
    return respond(request, "jobs/operation.html", "jobs/_operation.html", context)


@require_POST
@member_view(needs=Role.MEMBER)
def abort_operation(request: MemberRequest, operation_id: UUID) -> HttpResponse:
    """End it after its running step; what it has done stays, so it asks first."""
    found = _get(request, operation_id, Role.MEMBER)
    here = _path(request, operation_id)
    if found.state not in UNENDED:
        complain(request, f"The operation is {found.state} already.")
        return back_to(here)
    asked = Question(
        action="operation.abort",
        target=str(operation_id),
        title="Abort this operation?",
        text=f"{found.changed:,} are done and stay so; the rest is left as it is. An operation can not be taken up "
        "again, but you can start a new one.",
        button="Abort the operation",
        back=here,
    )

    def do() -> str:
        with deed(request.actor, "operation.abort", found) as doing:
            doing.on(abort(operation_id))
        return "It is aborted; a step that was under way is finished."

    return act(request, do, back=here, question=asked)


def _parts(row: Row) -> dict[str, Any]:
    """The bar with its shares, and what is left."""
    one = row.operation
    left = max(0, (row.expected or 0) - one.matched) if row.is_unended else 0
    bar = distribution(
        (("c-completed", "changed", one.changed), ("c-skipped", "skipped", one.skipped),
         ("c-failed", "failed", one.failed), ("c-left", "left", left)),
        f"{one.matched:,} looked at: {one.changed:,} changed, {one.skipped:,} skipped, {one.failed:,} failed",
    )  # fmt: skip
    return {"bar": bar, "left": left}


def _queue_names(request: MemberRequest, rows: Any) -> dict[str, str]:
    ids = {row.filter["queue_id"] for row in rows if row.filter.get("queue_id")}
    found = Queue.objects.filter(project=request.project, pk__in=ids) if ids else Queue.objects.none()
    return {str(pk): name for pk, name in found.values_list("pk", "name")}


def _get(request: MemberRequest, operation_id: UUID, needs: Role) -> Operation:
    found = of_project(request, get_operation(request.actor, operation_id, needs=needs), "operation")
    found.is_listed = found.ids is not None  # type: ignore[attr-defined] # as lists have it, which do not read the ids
    return found


def _path(request: MemberRequest, operation_id: UUID) -> str:
    return path_in(request, "operation", operation_id)
