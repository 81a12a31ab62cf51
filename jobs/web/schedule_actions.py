"""What can be done to a schedule. Every form works without a script; what can be taken back says how."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.urls import NoReverseMatch
from django.utils import timezone
from django.views.decorators.http import require_POST

from jobs.models import ScheduledJob
from jobs.selectors.schedules import get_schedule
from jobs.services import schedules as service
from jobs.services.backfill import backfill as run_backfill
from jobs.services.schedule_removal import delete_schedule
from jobs.web.schedules import get, path_of
from orgs.audit import deed
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, path_in
from scheduler_project.lib.errors import DomainError
from scheduler_project.lib.sql import past_deadlocks
from scheduler_project.lib.web.actions import act
from scheduler_project.lib.web.confirm import Question, unless_confirmed
from scheduler_project.lib.web.moments import BAD_TIME, moment_typed
from scheduler_project.lib.web.pages import back_to, own_path
from scheduler_project.lib.web.text import harmless
from scheduler_project.lib.web.toasts import complain, say, say_and_link

MOST_SAMPLES = 20


@require_POST
@member_view(needs=Role.ADMIN)
def activate(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    return _change(request, schedule_id, ("activate", "is on", "deactivate"), service.activate)


@require_POST
@member_view(needs=Role.ADMIN)
def deactivate(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    return _change(request, schedule_id, ("deactivate", "is off", "activate"), service.deactivate)


@require_POST
@member_view(needs=Role.ADMIN)
def pause(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:500]
    text = request.POST.get("until", "").strip()
    until = moment_typed(text)
    if text and (until is None or until <= request.now):
        complain(request, BAD_TIME if until is None else "The end of a pause must lie ahead.")
        return _back(request, schedule_id)

    def change(id_: UUID) -> ScheduledJob:
        return service.pause(id_, reason=reason, by=request.user.pk, until=until)

    end = f" until {timezone.localtime(until):%a %d %b, %H:%M %Z}" if until else ""
    return _change(request, schedule_id, ("pause", f"is paused{end}; its due times are skipped", "resume"), change)


@require_POST
@member_view(needs=Role.ADMIN)
def resume(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    found = get(request, schedule_id)
    until = timezone.localtime(found.paused_until) if found.paused_until else None
    kept = {"reason": found.paused_reason, "until": f"{until:%Y-%m-%dT%H:%M:%S}" if until else ""}
    return _change(request, schedule_id, ("resume", "goes on", "pause"), service.resume, kept)


@require_POST
@member_view(needs=Role.MEMBER)
def trigger(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    found = get(request, schedule_id)

    def do() -> HttpResponse:
        with deed(request.actor, "scheduled_job.trigger", found) as doing:
            job_id = service.trigger(found.pk)
            doing.says(job_id=job_id)
        say_and_link(request, f"{harmless(found.name, 80)} runs now.", _job_path(request, job_id), "Look at the job")
        return _back(request, schedule_id)

    return act(request, do, back=_next(request, schedule_id))


@require_POST
@member_view(needs=Role.ADMIN)
def backfill(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    """A dry run first, which shows the due times; the confirmed request runs them."""
    found = get(request, schedule_id)
    since, until = moment_typed(request.POST.get("since", "")), moment_typed(request.POST.get("until", ""))
    only_missed = request.POST.get("only_missed") == "on"
    if since is None or until is None:
        complain(request, BAD_TIME)
        return _back(request, schedule_id)
    try:
        planned = run_backfill(found.pk, since=since, until=until, only_missed=only_missed, is_dry_run=True).due_times
        if not planned:
            say(request, "Nothing is to be run: no due time of this window was missed.")
            return _back(request, schedule_id)
        asked = _backfill_question(request, found, planned, only_missed=only_missed)
        if (page := unless_confirmed(request, asked)) is not None:
            return page
        count = past_deadlocks(lambda: _run(request, found, since, until, only_missed=only_missed))
    except (DomainError, ValueError) as error:
        complain(request, getattr(error, "message", str(error)))
    else:
        say(request, f"{count:,} due times of {harmless(found.name, 80)} run now.")
    return _back(request, schedule_id)


def _run(request: MemberRequest, found: ScheduledJob, since: datetime, until: datetime, *, only_missed: bool) -> int:
    with deed(request.actor, "scheduled_job.backfill", found) as doing:
        ran = run_backfill(found.pk, since=since, until=until, only_missed=only_missed)
        doing.says(since=since, until=until, only_missed=only_missed, jobs=len(ran.job_ids))
    return len(ran.job_ids)


def _backfill_question(
    request: MemberRequest, found: ScheduledJob, planned: list[datetime], *, only_missed: bool
) -> Question:
    shown = [f"{timezone.localtime(at):%a %d %b %Y, %H:%M:%S %Z}" for at in planned[:MOST_SAMPLES]]
    if len(planned) > MOST_SAMPLES:
        shown.append(f"and {len(planned) - MOST_SAMPLES:,} more, the last at "
                     f"{timezone.localtime(planned[-1]):%a %d %b %Y, %H:%M:%S %Z}")  # fmt: skip
    jobs = "job" if len(planned) == 1 else "jobs"
    return Question(
        action="scheduled_job.backfill",
        target=[str(found.pk), only_missed, [at.isoformat() for at in planned]],
        title=f"Backfill {harmless(found.name, 80)}?",
        text=f"This was a dry run. {len(planned):,} {jobs} would be submitted at once, for the due times below.",
        button=f"Run {len(planned):,} {jobs}",
        back=path_of(request, found.pk),
        samples=shown,
    )


@require_POST
@member_view(needs=Role.ADMIN)
def delete(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    found = get(request, schedule_id)
    asked = Question(
        action="scheduled_job.delete",
        target=str(schedule_id),
        title=f"Delete {harmless(found.name, 80)}?",
        text="The schedule and its ledger go. Its jobs stay, and belong to no schedule any more.",
        button="Delete the schedule",
        back=path_of(request, schedule_id),
        must_type=found.name,
    )

    def do() -> str:
        with deed(request.actor, "scheduled_job.delete", found, is_end=True):
            delete_schedule(found.pk)
        return f"Schedule {harmless(found.name, 80)} is deleted."

    here = path_of(request, schedule_id)
    return act(request, lambda: past_deadlocks(do), back=here, question=asked, then=path_of(request))


def _change(
    request: MemberRequest, schedule_id: UUID, words: tuple[str, str, str],
    change: Callable[[UUID], ScheduledJob], kept: dict[str, Any] | None = None,
) -> HttpResponse:  # fmt: skip
    """Do it under the row's lock and say so.

    Args:
        words: the verb, what is said of the schedule, the verb that takes it back.
        kept: fields of the form that takes it back.
    """
    verb, said, undo = words
    get(request, schedule_id)

    def do() -> HttpResponse:
        with _locked(request, schedule_id) as found, deed(request.actor, f"scheduled_job.{verb}", found) as doing:
            doing.on(change(schedule_id))
        fields = {"next": _next(request, schedule_id), **(kept or {})}
        say(request, f"{harmless(found.name, 80)} {said}.", undo=path_of(request, schedule_id, undo), **fields)
        return _back(request, schedule_id)

    return act(request, do, back=_next(request, schedule_id))


@contextlib.contextmanager
def _locked(request: MemberRequest, schedule_id: UUID) -> Iterator[ScheduledJob]:
    with transaction.atomic():
        yield get_schedule(request.actor, schedule_id, needs=Role.ADMIN, is_locked=True)


def _next(request: MemberRequest, schedule_id: UUID) -> str:
    return own_path(request, request.POST.get("next", ""), path_of(request, schedule_id))


def _back(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    return back_to(_next(request, schedule_id))


def _job_path(request: MemberRequest, job_id: UUID) -> str:
    try:
        return path_in(request, "job", job_id)
    except NoReverseMatch:
        return ""
