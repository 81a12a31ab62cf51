"""Batches: the list with progress, one batch with its jobs and callbacks, closing it, cancelling all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from jobs.models import JobBatch
from jobs.selectors.batch_board import bad_and_running
from jobs.selectors.batch_lists import get_batch, list_batches, progress_each
from jobs.selectors.batches import Progress
from jobs.services.batches import CALLBACKS, cancel_batch, close_batch
from orgs.audit import deed
from orgs.models import Role
from orgs.selectors import list_audit
from orgs.web.access import MemberRequest, member_view, of_project, path_in
from queues.models import Queue
from scheduler_project.lib.sealed_json import masked
from scheduler_project.lib.web.charts import distribution
from scheduler_project.lib.web.confirm import Question, unless_confirmed
from scheduler_project.lib.web.pages import back_to, respond
from scheduler_project.lib.web.paging import page_by_id
from scheduler_project.lib.web.text import harmless
from scheduler_project.lib.web.toasts import complain, say

Status = JobBatch.Status
GLYPHS = {"open": "open", "running": "running", "completed": "completed", "failed": "failed", "cancelled": "cancelled"}
_MOMENTS = {
    "on_success": "When all its jobs completed",
    "on_failure": "With its first failure",
    "on_end": "When it has ended",
}
MOST_CHILDREN, MOST_AUDIT = 100, 10


@dataclass(frozen=True, slots=True)
class Row:
    """A batch with how far it is."""

    batch: JobBatch
    progress: Progress
    glyph: str
    bar: SafeString
    percent: float

    @classmethod
    def of(cls, batch: JobBatch, progress: Progress) -> Row:
        """As the pages show it."""
        done = progress.total - progress.pending
        percent = done / progress.total * 100 if progress.total else 0.0
        return cls(batch, progress, GLYPHS[batch.status], draw_bar(progress), percent)


@dataclass(frozen=True, slots=True)
class Callback:
    """A job that is submitted once, when its moment has come."""

    moment: str
    job_type: str
    queue: str
    queue_id: str
    payload: Any
    state: str
    word: str


@require_safe
@member_view()
def batches(request: MemberRequest) -> HttpResponse:
    status = request.GET.get("status", "")
    status = status if status in Status.values else ""
    wanted = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    found = list_batches(request.actor, request.project.pk).filter(parent=None)
    found = found.filter(status=status) if status else found
    page = page_by_id(request, found.filter(name__icontains=wanted) if wanted else found)
    context = {
        "section": "batches",
        "page": page,
        "rows": _rows(page.rows),
        "status": status,
        "shown": [("", "All"), *Status.choices],
        "wanted": wanted,
    }
    return respond(request, "jobs/batches.html", "jobs/_batches.html", context)


@require_safe
@member_view()
def batch(request: MemberRequest, batch_id: UUID) -> HttpResponse:
    found = _get(request, batch_id, Role.VIEWER)
    children = list(found.children.order_by("id")[:MOST_CHILDREN])
    row, *inner = _rows([found, *children])
    ids = [found.pk, *(child.pk for child in children)]
    bad, running = bad_and_running(ids)
    context: dict[str, Any] = {
        "section": "batches",
        "batch": found,
        "row": row,
        "children": inner,
        "is_unended": found.ended_at is None,
        "bad": bad,
        "running": running,
        "callbacks": _callbacks(request, found),
        "took": (found.ended_at or request.now) - found.created_at,
        "audit": list_audit(request.organization.pk, "job_batch", str(batch_id))[:MOST_AUDIT],
    }
    return respond(request, "jobs/batch.html", "jobs/_batch.html", context)


@require_POST
@member_view(needs=Role.MEMBER)
def close(request: MemberRequest, batch_id: UUID) -> HttpResponse:
    """It takes no more jobs: it ends when those it has have ended. Nothing opens it again."""
    found = _get(request, batch_id, Role.MEMBER)
    asked = Question(
        action="batch.close",
        target=str(batch_id),
        title=f"Close {harmless(found.name, 80)}?",
        text="It takes no more jobs, and ends when those it has have ended.",
        button="Close the batch",
        back=_path(request, batch_id),
    )
    if (page := unless_confirmed(request, asked)) is not None:
        return page
    with deed(request.actor, "batch.close", found):
        close_batch(batch_id)
        found.refresh_from_db()
    say(request, f"{harmless(found.name, 80)} takes no more jobs.")
    return back_to(_path(request, batch_id))


@require_POST
@member_view(needs=Role.MEMBER)
def cancel(request: MemberRequest, batch_id: UUID) -> HttpResponse:
    """Close it and cancel all its jobs that have not ended, with those of the batches inside it."""
    found = _get(request, batch_id, Role.MEMBER)
    if found.ended_at is not None:
        complain(request, f"The batch is {found.status} already.")
        return back_to(_path(request, batch_id))
    pending = progress_each([found])[found.pk].pending
    asked = Question(
        action="batch.cancel",
        target=str(batch_id),
        title=f"Cancel all of {harmless(found.name, 80)}?",
        text=f"{pending:,} of its jobs have not ended. Those that wait are cancelled, those that run are asked to "
        "stop.",
        button="Cancel all its jobs",
        back=_path(request, batch_id),
    )
    if (page := unless_confirmed(request, asked)) is not None:
        return page
    # Written down first: a large batch is cancelled in steps, each of which holds by itself.
    with deed(request.actor, "batch.cancel", found):
        close_batch(batch_id)
        found.refresh_from_db()
    count = cancel_batch(batch_id)
    say(request, f"{count:,} jobs of {harmless(found.name, 80)} are cancelled or asked to stop.")
    return back_to(_path(request, batch_id))


def draw_bar(progress: Progress) -> SafeString:
    """The shares of what became of its jobs."""
    return distribution(
        (("c-completed", "completed", progress.completed), ("c-failed", "failed", progress.failed),
         ("c-skipped", "cancelled", progress.cancelled), ("c-left", "not ended", progress.pending)),
        f"Of {progress.total:,} jobs {progress.completed:,} completed, {progress.failed:,} failed, "
        f"{progress.cancelled:,} were cancelled, {progress.pending:,} have not ended",
    )  # fmt: skip


def _rows(found: Sequence[JobBatch]) -> list[Row]:
    progress = progress_each(found)
    return [Row.of(one, progress[one.pk]) for one in found]


def _callbacks(request: MemberRequest, found: JobBatch) -> list[Callback]:
    given = [(kind, callback) for kind in CALLBACKS if (callback := getattr(found, kind)) is not None]
    ids = [callback["queue_id"] for _, callback in given]
    queues = Queue.objects.filter(project=request.project, pk__in=ids) if ids else Queue.objects.none()
    names = {str(pk): name for pk, name in queues.values_list("pk", "name")}
    return [
        Callback(
            _MOMENTS[kind], callback["job_type"], names.get(callback["queue_id"], "a deleted queue"),
            callback["queue_id"] if callback["queue_id"] in names else "", masked(callback.get("payload", {})),
            *_fate_of(kind, found),
        )
        for kind, callback in given
    ]  # fmt: skip


def _fate_of(kind: str, found: JobBatch) -> tuple[str, str]:
    """Glyph and word: has its moment come?"""
    if kind == "on_failure":
        has_come = found.failure_noted_at is not None
    else:
        has_come = found.status == Status.COMPLETED if kind == "on_success" else found.ended_at is not None
    if has_come and found.callback_error.startswith(kind):
        return "failed", "Refused"
    if has_come:
        return "completed", "Submitted"
    return ("cancelled", "Never") if found.ended_at is not None else ("scheduled", "Waits")


def _get(request: MemberRequest, batch_id: UUID, needs: Role) -> JobBatch:
    return of_project(request, get_batch(request.actor, batch_id, needs=needs), "batch")


def _path(request: MemberRequest, batch_id: UUID) -> str:
    return path_in(request, "batch", batch_id)
