"""Schedules: the list, and one with its ledger."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from jobs.models import ScheduledJob
from jobs.selectors.schedule_board import (
    LEDGER_RANGES,
    Delivery,
    board,
    delivery,
    ledger,
    statuses_of,
    ticks_of,
)
from jobs.selectors.worker_board import leader_now
from jobs.web.schedule_words import coming, is_late, row_of, words_of
from orgs.selectors import list_audit
from orgs.web.access import MemberRequest, member_view
from queues.selectors import queue_names
from scheduler_project.lib.errors import NotFound
from scheduler_project.lib.web.charts import stacked_bars
from scheduler_project.lib.web.keyset import page_by_column, text_or_none, time_or_none
from scheduler_project.lib.web.pages import respond
from scheduler_project.lib.web.paging import id_or_none
from scheduler_project.lib.web.viewer import zone_of

MOST_AUDIT = 10
STATES = (("", "All"), ("on", "On"), ("paused", "Paused"), ("off", "Off"), ("trouble", "Late or failing"))
OUTCOMES = (
    ("", "All"), ("fired", "Fired"), ("skipped", "Skipped"), ("manual", "By hand"), ("backfill", "Backfilled"),
)  # fmt: skip


@require_safe
@member_view()
def schedules(request: MemberRequest) -> HttpResponse:
    state = request.GET.get("state", "")
    wanted = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    queue_id = id_or_none(request.GET.get("queue", ""))
    found = board(request.project.pk, state, request.now)
    if wanted:
        found = found.filter(name__icontains=wanted)
    if queue_id:
        found = found.filter(queue=queue_id)
    page = page_by_column(request, found, "name", text_or_none)
    ticks = ticks_of(request.project.pk, page.rows)
    context = {
        "section": "scheduled_jobs",
        "page": page,
        "rows": [row_of(schedule, ticks[schedule.pk], request.now) for schedule in page.rows],
        "wanted": wanted,
        "state_now": state,
        "states": [(name, label, _query(request, state=name)) for name, label in STATES],
        "queue_id": queue_id,
        "queues": queue_names(request.project.pk),
        "is_filtered": bool(wanted or queue_id or state),
        "leader": leader_now(request.now),
    }
    return respond(request, "jobs/schedules.html", "jobs/_schedules.html", context)


@require_safe
@member_view()
def schedule(request: MemberRequest, schedule_id: UUID) -> HttpResponse:
    found = get(request, schedule_id)
    name = request.GET.get("range", "")
    name = name if name in LEDGER_RANGES else "7d"
    outcome = request.GET.get("outcome", "")
    past = delivery(found.pk, request.now, name)
    page = page_by_column(request, ledger(found.pk, past.bars[0], outcome), "-due_at", time_or_none)
    statuses = statuses_of(request.project.pk, [fire.job_id for fire in page.rows if fire.job_id])
    context: dict[str, Any] = {
        "section": "scheduled_jobs",
        "schedule": found,
        "sentence": words_of(found.cron_expression),
        "is_late": is_late(found, request.now),
        "coming": coming(found, request.now, zone_of(request)),
        "schedule_zone": found.timezone,
        "range": name,
        "ranges": [(one, _query(request, range=one)) for one in LEDGER_RANGES],
        "past": past,
        "percent": 100 * past.fired / past.promised if past.promised else None,
        "chart": _chart(past, name, zone_of(request)),
        "page": page,
        "fires": [
            (fire, statuses.get(fire.job_id) if fire.job_id else None, fire.late_ms / 1000) for fire in page.rows
        ],
        "outcome": outcome,
        "outcomes": [(one, label, _query(request, outcome=one)) for one, label in OUTCOMES],
        "leader": leader_now(request.now),
        "audit": list_audit(request.organization.pk, "scheduled_job", str(found.pk))[:MOST_AUDIT],
        "window": {"since": past.bars[0], "until": request.now},
    }
    return respond(request, "jobs/schedule.html", "jobs/_schedule.html", context)


def get(request: MemberRequest, schedule_id: UUID) -> ScheduledJob:
    """The schedule of this very project; the role was checked before."""
    rows = ScheduledJob.objects.filter(project=request.project, pk=schedule_id)
    found = rows.select_related("queue", "retry_policy", "paused_by").first()
    if found is None:
        raise NotFound("There is no such schedule.")
    return found


def path_of(request: MemberRequest, schedule_id: UUID | None = None, verb: str = "") -> str:
    """The path of the list, of a schedule, or of something done to it."""
    slugs = [request.organization.slug, request.project.slug]
    if schedule_id is None:
        return reverse("scheduled_jobs", args=slugs)
    return reverse(f"scheduled_job_{verb}" if verb else "scheduled_job", args=[*slugs, schedule_id])


def _query(request: MemberRequest, **changed: str) -> str:
    """The query string with something changed, from the first page on."""
    query = request.GET.copy()
    query.pop("after", None)
    for name, value in changed.items():
        query.pop(name, None)
        if value:
            query[name] = value
    return query.urlencode()


def _chart(past: Delivery, range_name: str, zone: str) -> Any:
    form = {"24h": "%H:%M", "7d": "%a %H:%M"}.get(range_name, "%d %b")
    labels = [f"{timezone.localtime(at):{form}}" for at in past.bars]
    parts = [("c-completed", "fired", past.fired_in), ("c-skipped", "skipped", past.skipped_in)]
    return stacked_bars(f"Promised against delivered ({zone})", labels, parts, nothing="Nothing was due in this range.")
