"""Queues: the list, one queue, and what can be done to it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.hints import WORK, hint
from jobs.selectors.dashboard import RANGES, alive_workers, history, queues_now, reports, serves, with_counts
from jobs.selectors.depths import depths
from jobs.selectors.queue_detail import next_up
from jobs.selectors.stats import recent_of
from jobs.services.closing import delete_queue
from jobs.services.operations import NewOperation, prepare, start
from jobs.services.pausing import tell_pause, wait_until_begun
from orgs.audit import deed
from orgs.models import Role
from orgs.selectors import list_audit
from orgs.web.access import MemberRequest, member_view, path_in
from queues.models import Queue
from queues.services import create_queue, locked, pause_queue, resume_queue, update_queue
from queues.web.forms import QueueForm, seal_of, values_of
from scheduler_project.lib.errors import NotFound
from scheduler_project.lib.web.actions import act, fill
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.history import charts_of, depth_chart
from scheduler_project.lib.web.pages import back_to, own_path, respond
from scheduler_project.lib.web.paging import page_by_id
from scheduler_project.lib.web.toasts import say, say_and_link
from scheduler_project.lib.web.viewer import zone_of

MOST_AUDIT = 10
#: An operation cancels jobs of one status; a purge is one for each.
WAITING = ("queued", "scheduled")
_FASTER = "Somebody changed this queue since you opened it. Its values now are shown below."


@require_safe
@member_view()
def queues(request: MemberRequest) -> HttpResponse:
    found = with_counts(Queue.objects.filter(project=request.project, deleted_at=None), request.now).order_by("-id")
    wanted = request.GET.get("q", "").strip()[:100]
    if wanted:
        found = found.filter(name__icontains=wanted)
    page = page_by_id(request, found)
    rows = queues_now(request.project, page.rows, alive_workers(request.project.pk), request.now)
    rows.sort(key=lambda row: row.queue.name)
    recent = recent_of(request.project.pk, [row.queue.pk for row in rows], request.now) if rows else {}
    shown = [(row, recent.get(row.queue.pk)) for row in rows]
    context = {"section": "queues", "page": page, "rows": shown, "wanted": wanted}
    return respond(request, "queues/queues.html", "queues/_queues.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.ADMIN)
def new_queue(request: MemberRequest) -> HttpResponse:
    form = QueueForm(request.project.pk, request.POST or None)

    def do() -> HttpResponse:
        with deed(request.actor, "queue.create") as doing:
            queue = create_queue(request.project, **form.settings())
            doing.on(queue)
        say(request, f"Queue {queue.name} is created.")
        return back_to(_path(request, queue.pk))

    if request.method == "POST" and (done := fill(request, form, do)):
        return done
    context = {"section": "queues", "form": form, "fields": [f for f in form if f.name != "name"]}
    return render(request, "queues/new.html", context, status=422 if form.errors else 200)


@require_safe
@member_view()
def queue(request: MemberRequest, queue_id: UUID) -> HttpResponse:
    return _show(request, _get(request, queue_id))


@require_POST
@member_view(needs=Role.ADMIN)
def edit(request: MemberRequest, queue_id: UUID) -> HttpResponse:
    found = _get(request, queue_id)
    form = QueueForm(request.project.pk, request.POST)

    def do() -> str | HttpResponse:
        with locked(queue_id):
            current = _get(request, queue_id)
            if request.POST.get("seal") != seal_of(current):
                fresh = QueueForm(request.project.pk, initial=values_of(current))
                return _show(request, current, fresh, status=409, problem=_FASTER)
            with deed(request.actor, "queue.update", current):
                update_queue(current, **form.settings())
        return f"Queue {current.name} is changed."

    return fill(request, form, do, then=_path(request, queue_id)) or _show(request, found, form, status=422)


@require_POST
@member_view(needs=Role.ADMIN)
def pause(request: MemberRequest, queue_id: UUID) -> HttpResponse:
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:500]
    here = own_path(request, request.POST.get("next", ""), _path(request, queue_id))

    def do() -> HttpResponse:
        with locked(queue_id):
            found = _get(request, queue_id)
            with deed(request.actor, "queue.pause", found):
                was_paused = found.is_paused
                pause_queue(found, reason=reason)
                tell_pause(found, was_paused=was_paused)
        wait_until_begun(found.pk)
        say(request, f"{found.name} is paused. Running jobs go on.", undo=_path(request, queue_id, "resume"), next=here)
        return back_to(here)

    _get(request, queue_id)
    return act(request, do, back=here)


@require_POST
@member_view(needs=Role.ADMIN)
def resume(request: MemberRequest, queue_id: UUID) -> HttpResponse:
    here = own_path(request, request.POST.get("next", ""), _path(request, queue_id))

    def do() -> HttpResponse:
        with locked(queue_id):
            found = _get(request, queue_id)
            reason = found.paused_reason
            with deed(request.actor, "queue.resume", found):
                was_paused = found.is_paused
                resume_queue(found)
                tell_pause(found, was_paused=was_paused)
        hint(WORK, str(queue_id))
        say(request, f"{found.name} is resumed.", undo=_path(request, queue_id, "pause"), reason=reason, next=here)
        return back_to(here)

    _get(request, queue_id)
    return act(request, do, back=here)


@require_POST
@member_view(needs=Role.ADMIN)
def purge(request: MemberRequest, queue_id: UUID) -> HttpResponse:
    """Cancel what waits in a queue, by operations the scheduler carries out."""
    found, here = _get(request, queue_id), _path(request, queue_id)
    prepared = [
        prepare(request.project, NewOperation(action="cancel", filter={"queue_id": queue_id, "status": status}))
        for status in WAITING
    ]
    count = sum(estimate.count for _, estimate in prepared)
    least = "at least " if any(estimate.is_capped for _, estimate in prepared) else ""
    asked = Question(
        action="queue.purge",
        target=str(queue_id),
        title=f"Purge {found.name}?",
        text=f"This cancels {least}{count:,} waiting jobs. Running jobs go on. It can not be undone.",
        button="Cancel all waiting jobs",
        back=here,
        must_type=found.name,
    )

    def do() -> HttpResponse:
        with deed(request.actor, "queue.purge", found) as doing:
            for operation, estimate in prepared:
                start(operation, by=request.user.pk, api_key_id=None)
                doing.says(**{operation.filter["status"]: estimate.count})
        watch = path_in(request, "operations") + "?show=unended"
        say_and_link(request, f"{found.name} is being purged; the scheduler cancels what waits.", watch, "Watch it")
        return back_to(here)

    return act(request, do, back=here, question=asked)


@require_POST
@member_view(needs=Role.ADMIN)
def delete(request: MemberRequest, queue_id: UUID) -> HttpResponse:
    found = _get(request, queue_id)
    asked = Question(
        action="queue.delete",
        target=str(queue_id),
        title=f"Delete {found.name}?",
        text="The queue and its settings go; finished jobs stay until retention removes them.",
        button="Delete the queue",
        back=_path(request, queue_id),
        must_type=found.name,
    )

    def do() -> str:
        with locked(queue_id), deed(request.actor, "queue.delete", found, is_end=True):
            delete_queue(found)
        return f"Queue {found.name} is deleted."

    return act(request, do, back=_path(request, queue_id), question=asked, then=path_in(request, "queues"))


def _show(
    request: MemberRequest, found: Queue, form: QueueForm | None = None, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    name = request.GET.get("range", "")
    name = name if name in RANGES else "1h"
    workers = alive_workers(request.project.pk)
    [row] = queues_now(request.project, [found], workers, request.now)
    path = f"{request.organization.slug}/{request.project.slug}/{found.name}"
    past = history(request.project.pk, request.now, name, found.pk)
    deep, zone = depths(request.project.pk, past.bars, found.pk), zone_of(request)
    ended = [(job_type, counts) for job_type, counts in past.by_type.items() if counts.total()]
    context: dict[str, Any] = {
        "section": "queues",
        "queue": found,
        "row": row,
        "range": name,
        "ranges": RANGES,
        "workers": [(worker, reports(worker, request.now)) for worker in workers if serves(worker, path)],
        "past": past,
        "next_up": next_up(found, row),
        "types": sorted(ended, key=lambda item: -item[1].total())[:20],
        "form": form or QueueForm(request.project.pk, initial=values_of(found)),
        "is_editing": form is not None,
        "problem": problem,
        "seal": seal_of(found),
        "audit": list_audit(request.organization.pk, "queue", str(found.pk))[:MOST_AUDIT],
        **charts_of(past, zone),
        "depth": depth_chart(past.bars, deep, zone),
    }
    return respond(request, "queues/queue.html", "queues/_queue.html", context, status=status)


def _get(request: MemberRequest, queue_id: UUID) -> Queue:
    """The queue of this very project; the role was checked before."""
    queues = Queue.objects.filter(project=request.project, pk=queue_id, deleted_at=None)
    found = with_counts(queues, request.now).first()
    if found is None:
        raise NotFound("There is no such queue.")
    return found


def _path(request: MemberRequest, queue_id: UUID, verb: str = "") -> str:
    return path_in(request, f"queue_{verb}" if verb else "queue", queue_id)
