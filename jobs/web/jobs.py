"""The jobs of a project: tabs by state, filters in the address, and what can be done to several at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_POST, require_safe

from jobs.models import Job
from jobs.selectors.depth_now import depth_of_all
from jobs.selectors.job_lists import page_of_jobs
from jobs.selectors.job_search import HELP, WINDOWS
from jobs.services.operations import CAREFUL, MAX_CANARY, MAX_PACE, NewOperation, prepare, start
from jobs.states import JobStatus
from jobs.web.job_filter import Chosen
from orgs.audit import deed
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, path_in
from queues.models import Queue
from scheduler_project.lib.errors import DomainError, ValidationFailed
from scheduler_project.lib.web.care import CareForm
from scheduler_project.lib.web.confirm import Question, unless_confirmed
from scheduler_project.lib.web.pages import back_to, own_path, respond
from scheduler_project.lib.web.paging import id_or_none, size_of
from scheduler_project.lib.web.toasts import complain, say_and_link

MOST_QUEUES, MOST_SELECTED, MOST_SAMPLES = 1_000, 500, 3
#: What an operation does -> how it is said.
VERBS = {"cancel": ("Cancel", "are cancelled"), "retry": ("Queue again", "are queued again")}


@require_safe
@member_view()
def jobs(request: MemberRequest) -> HttpResponse:
    """The list. What was typed into the search box leads to the address that says the same."""
    found = Queue.objects.filter(project=request.project).order_by("name")
    queues = list(found.values_list("id", "name", "deleted_at")[:MOST_QUEUES])
    names = {id_: name for id_, name, _ in queues}
    alive = {id_: name for id_, name, deleted_at in queues if deleted_at is None}
    chosen, problem = Chosen.of(request.GET), ""
    if "q" in request.GET:
        try:
            return back_to(f"{request.path}?{Chosen.searched(request.GET['q'], alive).address()}")
        except ValidationFailed as error:
            problem = error.details[0].message
    page = _page(request, chosen, [] if problem else list(names))
    for job in page["rows"]:
        job.queue_name = names.get(job.queue_id, "")
        job.moment = _moment_of(job)
    context: dict[str, Any] = {
        "section": "jobs",
        "chosen": chosen,
        "windows": WINDOWS,
        "queues": alive.items(),
        "tabs": _tabs(request, depth_of_all(request.project.pk, alive, request.now)),
        "typed": request.GET["q"] if problem else chosen.words(names),
        "problem": problem,
        "words": HELP,
        "everything": chosen.address(window="all"),
        **page,
    }
    return respond(request, "jobs/jobs.html", "jobs/_jobs.html", context)


@require_POST
@member_view(needs=Role.MEMBER)
def act(request: MemberRequest) -> HttpResponse:
    """Cancel or retry the selected jobs, or all that match: an operation the scheduler carries out step by step."""
    here = own_path(request, request.POST.get("next", ""), path_in(request, "jobs"))
    action = request.POST.get("action", "")
    at = _frozen_at(request)
    if action not in VERBS:
        complain(request, "Choose what is to be done.")
        return back_to(here)
    form = CareForm(request.POST, most_canary=MAX_CANARY, most_pace=MAX_PACE) if action in CAREFUL else None
    try:
        wanted = replace(_wanted(request, action, at), **(form.care() if form else {}))
        operation, estimate = prepare(request.project, wanted)
    except DomainError as error:
        complain(request, error.message)
        return back_to(here)
    if not estimate.count:
        complain(request, "None of these jobs is in a state for that.")
        return back_to(here)
    verb, done = VERBS[action]
    least = "at least " if estimate.is_capped else ""
    asked = Question(
        action=f"job.{action}",
        target=[dict(wanted.filter), operation.ids],
        title=f"{verb} {least}{estimate.count:,} jobs?",
        text=f"{least.capitalize()}{estimate.count:,} jobs {done}. Those that have moved on by then are left alone.",
        button=verb,
        back=here,
        samples=[f"{row['job_type']} {row['id']} ({row['status']})" for row in estimate.sample[:MOST_SAMPLES]],
        form=form,
    )
    if (page := unless_confirmed(request, asked)) is not None:
        return page
    with deed(request.actor, f"job.{action}_many") as doing:
        doing.on(start(operation, by=request.user.pk, api_key_id=None))
    text = f"{least.capitalize()}{estimate.count:,} jobs {done}, one step after the other."
    watch = path_in(request, "operation", operation.pk)
    say_and_link(request, text, watch, "Watch it")
    return back_to(here)


def _frozen_at(request: MemberRequest) -> datetime:
    """The moment of the question: the answer is about what there was then, not about what came since."""
    try:
        given = datetime.fromisoformat(request.POST.get("frozen_at", ""))
        at = min(given, request.now) if given.tzinfo else request.now
    except ValueError:
        at = request.now
    kept = request.POST.copy()
    kept["frozen_at"] = at.isoformat()
    request.POST = kept  # type: ignore[assignment] # the page that asks sends on what was posted
    return at


def _wanted(request: MemberRequest, action: str, at: datetime) -> NewOperation:
    if not request.POST.get("all"):
        texts = request.POST.getlist("ids")[:MOST_SELECTED]
        ids = [id_ for text in texts if (id_ := id_or_none(text)) is not None]
        mine = Job.objects.in_projects([request.project.pk]).filter(pk__in=ids)
        return NewOperation(action=action, filter={}, ids=list(mine.values_list("pk", flat=True)))
    chosen = Chosen.of(request.POST)
    if chosen.is_searched:
        raise ValidationFailed.of("all", "an operation takes no id or error: select the jobs instead")
    filter_: dict[str, Any] = {"queue_id": chosen.queue_id, "status": chosen.status, "job_type": chosen.job_type}
    filter_ |= {"created_from": chosen.since(at), "created_to": at}
    return NewOperation(action=action, filter={name: value for name, value in filter_.items() if value})


def _page(request: MemberRequest, chosen: Chosen, queue_ids: list[UUID]) -> dict[str, Any]:
    size, after = size_of(request), id_or_none(request.GET.get("after", ""))
    wanted = chosen.filter_in(queue_ids, request.project.pk, request.now)
    if wanted is None or not queue_ids:
        return {"rows": [], "next_query": None, "first_query": None, "needs_queue": wanted is None}
    found = page_of_jobs(wanted, cursor=after, rows=slice(0, size + 1))
    query = request.GET.copy()
    query.pop("after", None)
    first = query.urlencode() if after else None
    more = found.jobs[size - 1].pk if len(found.jobs) > size else found.resume_below
    if more is None:
        return {"rows": found.jobs, "next_query": None, "first_query": first}
    query["after"] = str(more)
    return {"rows": found.jobs[:size], "next_query": query.urlencode(), "first_query": first}


def _tabs(request: MemberRequest, total: Mapping[str, int]) -> list[tuple[str, str, int | None, str]]:
    """Name, word, count (of what is not finished) and query string."""
    tabs = []
    for status in ("", *JobStatus.values):
        query = request.GET.copy()
        query.pop("after", None)
        query.pop("q", None)
        query["status"] = status
        tabs.append((status, str(JobStatus(status).label) if status else "All", total.get(status), query.urlencode()))
    return tabs


def _moment_of(job: Job) -> tuple[str, datetime | None]:
    """The time that matters in this state."""
    if job.status == JobStatus.SCHEDULED:
        return ("waits for other jobs" if job.is_blocked else "due", None if job.is_blocked else job.run_at)
    if job.status == JobStatus.QUEUED:
        return "ready", job.run_at
    if job.status in (JobStatus.CLAIMED, JobStatus.RUNNING):
        return "began", job.locked_at
    return "ended", job.completed_at
