"""One job: where it is and why, its attempts, its log, and what a person can do about it."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_POST, require_safe

from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.requeue import requeue_job
from jobs.models import Job, JobDependency, JobExecution, JobLog
from jobs.selectors.executions import list_executions
from jobs.selectors.explain import explain
from jobs.selectors.jobs import get_job_with_queue
from jobs.states import IN_FLIGHT, TERMINAL, JobStatus
from jobs.web.job_filter import alike
from jobs.web.timeline import draw_strip, steps_of
from orgs.audit import deed
from orgs.models import Role
from orgs.selectors import list_audit
from orgs.web.access import MemberRequest, member_view, of_project, path_in
from scheduler_project.lib.sealed_json import masked
from scheduler_project.lib.sql import past_deadlocks
from scheduler_project.lib.web.actions import act
from scheduler_project.lib.web.pages import respond

MOST_ATTEMPTS, MOST_LINES, MOST_EDGES, MOST_AUDIT = 20, 500, 20, 10


@require_safe
@member_view()
def job(request: MemberRequest, job_id: UUID) -> HttpResponse:
    found = _get(request, job_id, Role.VIEWER)
    attempts, lines = _past(found)
    steps = steps_of(found, attempts, request.now)
    context: dict[str, Any] = {
        "section": "jobs",
        "job": found,
        "steps": steps,
        "strip": draw_strip(steps),
        "are_attempts_cut": len(attempts) == MOST_ATTEMPTS,
        "has_ended": found.status in TERMINAL,
        "is_in_flight": found.status in IN_FLIGHT,
        "part": alike(found.error_message[:2_000]) if found.error_message else "",
        "reasons": [] if found.status in TERMINAL else explain(found),
        "attempts": attempts,
        "lines": lines[::-1],
        "is_log_cut": len(lines) == MOST_LINES,
        "parents": _edges(job_id=job_id, other="depends_on_job"),
        "children": _edges(depends_on_job_id=job_id, other="job") if found.has_dependants else [],
        "audit": list_audit(request.organization.pk, "job", str(job_id))[:MOST_AUDIT],
        "curl": _curl(request, found),
        "payload": masked(found.payload),
    }
    return respond(request, "jobs/job.html", "jobs/_job.html", context)


@require_POST
@member_view(needs=Role.MEMBER)
def cancel(request: MemberRequest, job_id: UUID) -> HttpResponse:
    """Cancel it at once, or ask it to stop if it runs."""
    _get(request, job_id, Role.MEMBER)
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:500] or f"cancelled by {request.user.email}"

    def stop() -> JobStatus:
        found = _get(request, job_id, Role.MEMBER)
        with deed(request.actor, "job.cancel", found) as doing:
            status = cancel_job(job_id, reason=reason)
            found.status = status.value
            doing.says(reason=reason)
        return status

    def do() -> str:
        return "It is cancelled." if past_deadlocks(stop) in TERMINAL else "It was asked to stop."

    return act(request, do, back=_path(request, job_id))


@require_POST
@member_view(needs=Role.MEMBER)
def retry(request: MemberRequest, job_id: UUID) -> HttpResponse:
    """Queue an ended job again, with a fresh budget of attempts."""
    _get(request, job_id, Role.MEMBER)

    def again() -> None:
        found = _get(request, job_id, Role.MEMBER)
        with deed(request.actor, "job.retry", found):
            requeue_job(job_id, by=request.user.pk)
            found.status = JobStatus.QUEUED.value

    def do() -> str:
        past_deadlocks(again)
        return "It is queued again."

    return act(request, do, back=_path(request, job_id))


@require_safe
@member_view()
def payload(request: MemberRequest, job_id: UUID) -> HttpResponse:
    """The whole payload or result, to keep: the page shows only the first part of big ones."""
    found = _get(request, job_id, Role.VIEWER)
    part = "result" if request.GET.get("part") == "result" else "payload"
    text = json.dumps(masked(getattr(found, part)), ensure_ascii=False, indent=2)
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{part}-{job_id}.json"'
    return answer


def _past(found: Job) -> tuple[list[JobExecution], list[JobLog]]:
    """Its newest attempts and log lines; what was never claimed has none."""
    if not found.fencing_number:
        return [], []
    lines = JobLog.objects.filter(job_id=found.pk).order_by("-ts", "-id")
    return list(list_executions(found, slice(0, MOST_ATTEMPTS))), list(lines[:MOST_LINES])


def _edges(*, other: str, **which: UUID) -> list[dict[str, Any]]:
    columns = (f"{other}_id", f"{other}__job_type", f"{other}__status", "on_failure")
    rows = JobDependency.objects.filter(**which).order_by(f"{other}_id").values_list(*columns)[:MOST_EDGES]
    return [dict(zip(("id", "job_type", "status", "on_failure"), row, strict=True)) for row in rows]


def _curl(request: MemberRequest, found: Job) -> str:
    body = json.dumps({"queue": found.queue.name, "job_type": found.job_type, "payload": masked(found.payload)})
    if len(body) > 4_000:
        body = json.dumps({"queue": found.queue.name, "job_type": found.job_type, "payload": "…"})
    quoted = body.replace("'", "'\\''")
    url = request.build_absolute_uri("/api/jobs")
    return f"curl {url} -H 'X-API-Key: …' -H 'Content-Type: application/json' -d '{quoted}'"


def _get(request: MemberRequest, job_id: UUID, needs: Role) -> Job:
    return of_project(request, get_job_with_queue(request.actor, job_id, needs=needs), "job")


def _path(request: MemberRequest, job_id: UUID) -> str:
    return path_in(request, "job", job_id)
