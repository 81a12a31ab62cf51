"""The dashboard."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from jobs.selectors.dashboard import RANGES, Failing, History, Now, failing, history, project_now, reports
from jobs.selectors.depths import Depths, depths
from jobs.web.job_filter import alike
from orgs.models import Project
from orgs.web.access import MemberRequest, member_view
from scheduler_project.lib.replica import from_replica
from scheduler_project.lib.shared import Shared
from scheduler_project.lib.web.charts import distribution
from scheduler_project.lib.web.history import charts_of, depth_chart, status_chart
from scheduler_project.lib.web.pages import respond, wants_fragment
from scheduler_project.lib.web.viewer import zone_of

MOST_UPCOMING, MOST_WORKERS = 6, 8
Causes = tuple[list[Failing], bool]
Look = tuple[History, Depths, Now, Causes]
#: However many have a project's dashboard open: what their regions ask for is read about once a second.
_looks: Shared[Look] = Shared(keep_s=1.0)
#: What fails most in a range changes slowly, and is half of what a look costs where much fails.
_causes: Shared[Causes] = Shared(keep_s=5.0)


@require_safe
@member_view()
@from_replica
def dashboard(request: MemberRequest) -> HttpResponse:
    name = range_of(request)
    is_opened = not wants_fragment(request)
    past, deep, present, (causes, is_cut) = _looks.get(
        (request.project.pk, name), lambda: _look(request.project, request.now, name), is_fresh=is_opened
    )
    context = {"section": "dashboard", "range": name, "ranges": RANGES, "past": past, "present": present}
    context |= {"failing": [(row, alike(row.error)) for row in causes], "is_cut": is_cut}
    context["workers"] = [
        {"worker": worker, "reports": reports(worker, request.now)} for worker in present.workers[:MOST_WORKERS]
    ]
    zone = zone_of(request)
    context |= charts_of(past, zone) | _tiles(past, present) | _lines(past, name)
    context |= {"depth": depth_chart(past.bars, deep, zone), "statuses_then": status_chart(past.bars, deep, zone)}
    return respond(request, "jobs/dashboard.html", "jobs/_dashboard.html", context)


def _look(project: Project, now: datetime, name: str) -> Look:
    past = history(project.pk, now, name)
    causes = _causes.get((project.pk, name), lambda: failing(project.pk, past.bars[0]))
    return past, depths(project.pk, past.bars), project_now(project, now), causes


def range_of(request: HttpRequest) -> str:
    name = request.GET.get("range", "")
    return name if name in RANGES else "1h"


def _tiles(past: History, present: Now) -> dict[str, Any]:
    ended = sum(past.completed) + sum(past.failed)
    total = present.total
    parts = [
        ("c-scheduled", "scheduled", total["scheduled"]),
        ("c-queued", "queued", total["queued"]),
        ("c-running", "running", total["claimed"] + total["running"]),
        ("c-dead", "dead letter", total["dead_letter"]),
    ]
    busy = [row for row in present.queues if row.depth["queued"] or row.in_flight]
    return {
        "busy": sorted(busy, key=lambda row: -row.depth["queued"])[:8],
        "deepest": max((row.depth["queued"] for row in busy), default=0),
        "in_flight": total["claimed"] + total["running"],
        "ready": total["queued"],
        "dead": total["dead_letter"],
        "failure_rate": 100 * sum(past.failed) / ended if ended else None,
        "failed": sum(past.failed),
        "ended": ended,
        "by_status": distribution(parts, "Jobs by status"),
        "statuses": parts,
        "upcoming": [row for row in present.schedules if row.next_run_at and not row.is_paused][:MOST_UPCOMING],
    }


def _lines(past: History, name: str) -> dict[str, Any]:
    """What the small lines in the tiles show, and what they are called."""
    waits = past.wait["p95"]
    known = [wait for wait in waits if wait is not None]
    labels = {"submitted": "Submitted", "waits": "Waits, 95 %", "started": "Begun", "failures": "Failed attempts"}
    return {
        "n_created": sum(past.created),
        "wait_line": [wait or 0.0 for wait in waits],
        "typical_wait": max(known) if known else None,
        "dead_label": f"New dead letters, {name}",
        **{f"{key}_label": f"{label}, {name}" for key, label in labels.items()},
    }
