"""Workers: who is there and what each one runs; and who leads the scheduling."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_POST, require_safe

from jobs.models import Worker
from jobs.selectors.dashboard import queues_now, with_counts
from jobs.selectors.worker_board import (
    WorkerNow,
    alive_now,
    capacities,
    gone_lately,
    leader_of,
    newest_terms,
)
from jobs.services.remote.presence import request_drain
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, path_in
from queues.models import Queue
from scheduler_project.lib.errors import DomainError, Forbidden, NotFound
from scheduler_project.lib.web.confirm import Question, unless_confirmed
from scheduler_project.lib.web.pages import back_to, respond
from scheduler_project.lib.web.text import harmless
from scheduler_project.lib.web.toasts import complain, say

SHOWN = (("", "Now"), ("draining", "Draining"), ("lost", "Lost"), ("left", "Left"))
PAGE, MOST_QUEUES = 60, 200


@require_safe
@member_view()
def workers(request: MemberRequest) -> HttpResponse:
    show, wanted = request.GET.get("show", ""), request.GET.get("q", "").strip()[:100]
    alive = alive_now(request.project, request.now)
    lost = gone_lately(request.project, request.now, ["lost"])
    if show == "left":
        chosen = gone_lately(request.project, request.now, ["stopped"])
    elif show == "draining":
        chosen = [row for row in alive if row.worker.status == "draining"]
    else:
        chosen = lost if show == "lost" else [*lost, *alive]
    if wanted:
        chosen = [row for row in chosen if wanted.lower() in f"{row.worker.hostname}:{row.worker.pid}".lower()]
    page, following = _page(request, chosen)
    terms = newest_terms()
    queues = with_counts(Queue.objects.filter(project=request.project, deleted_at=None), request.now).order_by("name")
    rows = queues_now(request.project, list(queues[:MOST_QUEUES]), [row.worker for row in alive], request.now)
    context = {
        "section": "workers",
        "rows": page,
        "following": following,
        "show": show,
        "shown": SHOWN,
        "wanted": wanted,
        "alive": alive,
        "n_lost": len(lost),
        "n_draining": sum(row.worker.status == "draining" for row in alive),
        "n_silent": sum(row.is_silent for row in alive),
        "used": sum(row.used for row in alive if not row.is_silent),
        "slots": sum(row.worker.max_concurrency for row in alive if not row.is_silent),
        "versions": sorted({row.worker.version for row in alive if row.worker.project_id is None}),
        "capacities": capacities(request.project, rows, alive)[:20],
        "terms": terms,
        "leader": leader_of(terms, request.now),
    }
    return respond(request, "jobs/workers.html", "jobs/_workers.html", context)


@require_POST
@member_view(needs=Role.ADMIN)
def drain(request: MemberRequest, worker_id: UUID) -> HttpResponse:
    """Ask a worker over HTTP to take nothing new. Our own belong to no project and hear by SIGTERM."""
    worker = Worker.objects.filter(pk=worker_id, project=request.project).first()
    if worker is None:
        raise NotFound("There is no such worker.")
    back, name = path_in(request, "workers"), worker.hostname
    asked = Question(
        action="worker.drain",
        target=str(worker_id),
        title=f"Drain {harmless(name, 80)}?",
        text="It finishes the jobs it has and takes nothing new. It hears so with its next heartbeat. To work again it "
        "has to be started anew.",
        button="Drain the worker",
        back=back,
    )
    if (page := unless_confirmed(request, asked)) is not None:
        return page
    try:
        request_drain(request.actor, worker_id)
    except (NotFound, Forbidden):
        raise
    except DomainError as error:
        complain(request, error.message)
    else:
        say(request, f"{harmless(name, 80)} is asked to drain.")
    return back_to(back)


def _page(request: MemberRequest, rows: Sequence[WorkerNow]) -> tuple[Sequence[WorkerNow], str]:
    """The rows after the worker that ``after`` names, and the query string of the next page."""
    after = request.GET.get("after", "")
    first = next((i + 1 for i, row in enumerate(rows) if str(row.worker.pk) == after), 0)
    shown = rows[first : first + PAGE]
    if first + PAGE >= len(rows):
        return shown, ""
    query = request.GET.copy()
    query["after"] = str(shown[-1].worker.pk)
    return shown, query.urlencode()
