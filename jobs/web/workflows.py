"""Workflows: the newest ones, and the graph of the jobs that hang together with one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_POST, require_safe

from jobs.lifecycle.cancel import cancel_from
from jobs.lifecycle.requeue import requeue_from
from jobs.models import Job
from jobs.selectors.jobs import get_job
from jobs.selectors.workflows import MOST_JOBS, Brief, Workflow, recent_workflows, workflow_of
from jobs.states import TERMINAL, JobStatus
from jobs.web.graph_layers import Member, Node, layered
from jobs.web.graph_svg import can_be_drawn, draw
from orgs.audit import deed
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, of_project, path_in
from scheduler_project.lib.sql import past_deadlocks
from scheduler_project.lib.web.actions import act
from scheduler_project.lib.web.charts import distribution
from scheduler_project.lib.web.confirm import Question
from scheduler_project.lib.web.pages import respond
from scheduler_project.lib.web.paging import id_or_none

MOST_LISTED = 50
_PARTS = (
    ("c-completed", "completed", (JobStatus.COMPLETED,)),
    ("c-running", "running", (JobStatus.CLAIMED, JobStatus.RUNNING)),
    ("c-failed", "failed", (JobStatus.FAILED, JobStatus.DEAD_LETTER)),
    ("c-skipped", "cancelled", (JobStatus.CANCELLED,)),
    ("c-left", "waiting", (JobStatus.QUEUED, JobStatus.SCHEDULED)),
)


@require_safe
@member_view()
def workflows(request: MemberRequest) -> HttpResponse:
    rows = [_listed(brief) for brief in recent_workflows(request.project.pk)]
    context = {"section": "workflows", "rows": rows}
    return respond(request, "jobs/workflows.html", "jobs/_workflows.html", context)


@require_safe
@member_view()
def workflow(request: MemberRequest, job_id: UUID) -> HttpResponse:
    """The graph around a job, which stands out; ``group`` lists the jobs of a folded node."""
    focus = _get(request, job_id, Role.VIEWER)
    found = workflow_of(job_id)
    columns = _columns(found)
    chosen = _group(request, columns)
    context: dict[str, Any] = {
        "section": "workflows",
        "focus": focus,
        "has_ended": focus.status in TERMINAL,
        "total": len(found.jobs),
        "is_cut": found.is_cut,
        "most": MOST_JOBS,
        "steps": len(columns),
        "bar": _bar(found.counts, len(found.jobs)),
        "parts": _parts(found.counts),
        "unended": sum(n for status, n in found.counts.items() if status not in TERMINAL),
        "graph": draw(columns, str(job_id), lambda node: _link(request, job_id, node)) if can_be_drawn(columns) else "",
        "chosen": chosen,
        "rows": found.worst({member.id for member in chosen.members} if chosen else None, MOST_LISTED),
        "most_listed": MOST_LISTED,
    }
    return respond(request, "jobs/workflow.html", "jobs/_workflow.html", context)


@require_POST
@member_view(needs=Role.MEMBER)
def cancel(request: MemberRequest, job_id: UUID) -> HttpResponse:
    """Cancel a job and all that wait for it."""
    found = _get(request, job_id, Role.MEMBER)
    downstream, here = len(Job.objects.descendants(id_=str(job_id))), _path(request, job_id)
    asked = Question(
        action="workflow.cancel",
        target=str(job_id),
        title="Cancel it and all that wait for it?",
        text=f"That is {found.job_type} and {downstream:,} jobs behind it. Those that have ended stay as they are, "
        "those that run are asked to stop.",
        button="Cancel from here",
        back=here,
    )
    reason = f"cancelled by {request.user.email}"

    def do() -> str:
        with deed(request.actor, "job.cancel", found) as doing:
            count = len(cancel_from(job_id, reason=reason))
            doing.says(reason=reason, with_downstream=True)
        return f"{count:,} jobs are cancelled or asked to stop."

    return act(request, do, back=here, question=asked)


@require_POST
@member_view(needs=Role.MEMBER)
def retry(request: MemberRequest, job_id: UUID) -> HttpResponse:
    """Run an ended job and all that wait for it again, in their order."""
    found = _get(request, job_id, Role.MEMBER)
    downstream, here = len(Job.objects.descendants(id_=str(job_id))), _path(request, job_id)
    asked = Question(
        action="workflow.retry",
        target=str(job_id),
        title="Run it again from here?",
        text=f"{found.job_type} runs again now, and of the {downstream:,} jobs behind it those that have ended, in "
        "their order.",
        button="Run again from here",
        back=here,
    )

    def do() -> str:
        with deed(request.actor, "job.retry", found) as doing:
            count = requeue_from(job_id, by=request.user.pk)
            doing.says(with_downstream=True)
        return f"{count:,} jobs run again, in their order."

    return act(request, lambda: past_deadlocks(do), back=here, question=asked)


def _columns(found: Workflow) -> list[list[Node]]:
    members = [Member(job.id, job.job_type, job.status) for job in found.jobs]
    return layered(members, [(parent, job.id) for job in found.jobs for parent in job.parents])


def _group(request: MemberRequest, columns: list[list[Node]]) -> Node | None:
    key = id_or_none(request.GET.get("group", ""))
    return next((node for column in columns for node in column if node.is_folded and node.key == str(key)), None)


def _parts(counts: Any) -> list[tuple[str, str, int]]:
    return [(css, word, sum(counts[status] for status in statuses)) for css, word, statuses in _PARTS]


def _bar(counts: Any, total: int) -> Any:
    parts = _parts(counts)
    return distribution(parts, f"Of {total:,} jobs " + ", ".join(f"{n:,} {word}" for _, word, n in parts))


def _listed(brief: Brief) -> dict[str, Any]:
    unended = sum(n for status, n in brief.counts.items() if status not in TERMINAL)
    bad = brief.counts[JobStatus.FAILED] + brief.counts[JobStatus.DEAD_LETTER]
    if unended:
        glyph, word = "running", "Under way"
    elif bad:
        glyph, word = "failed", "Failed"
    else:
        is_stopped = bool(brief.counts[JobStatus.CANCELLED])
        glyph, word = ("cancelled", "Cancelled in part") if is_stopped else ("completed", "Completed")
    return {"brief": brief, "glyph": glyph, "word": word, "bad": bad, "bar": _bar(brief.counts, brief.total),
            "unended": unended}  # fmt: skip


def _link(request: MemberRequest, focus_id: UUID, node: Node) -> str:
    if node.is_folded:
        return f"{_path(request, focus_id)}?group={node.key}#jobs"
    return _path(request, UUID(node.key))


def _get(request: MemberRequest, job_id: UUID, needs: Role) -> Job:
    return of_project(request, get_job(request.actor, job_id, needs=needs), "job")


def _path(request: MemberRequest, job_id: UUID) -> str:
    return path_in(request, "workflow", job_id)
