"""What a schedule promised and delivered, and running what was missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.answers import BackfillOutput, fires_page
from jobs.api.schedule_shapes import BackfillInput, FireOutput, FiresQuery
from jobs.selectors.ledger import list_fires, promised_and_delivered
from jobs.selectors.schedules import get_schedule
from jobs.services.backfill import backfill
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from scheduler_project.lib.rest.describe import describe
from scheduler_project.lib.rest.paging import Key
from scheduler_project.lib.rest.views import ApiView, read_body, read_page
from scheduler_project.lib.sql import database_now, past_deadlocks

BY_DUE_TIME = (Key("due_at", "time"),)
#: A ledger has no end: without "since" this much of it is shown and counted, and the answer says so.
USUAL_WINDOW = timedelta(days=31)
_LAST = datetime(9999, 1, 1, tzinfo=UTC)


class FiresView(ApiView):
    @describe({200: fires_page(FireOutput)}, query=FiresQuery)
    def get(self, request: Request, schedule_id: UUID) -> Response:
        query, window = read_page(request, FiresQuery, order=BY_DUE_TIME)
        get_schedule(actor_of(request), schedule_id, needs=Role.VIEWER)
        until = query.get("until", _LAST)
        since = query.get("since") or min(until, database_now()) - USUAL_WINDOW
        if since > until:
            raise ValidationError({"until": ["must not be before since"]})
        fires = window.read(list_fires(schedule_id).filter(due_at__range=(since, until)))
        page = window.page(fires, FireOutput().to_representation)
        shown_window = {"from": since, "to": query.get("until"), "is_default": "since" not in query}
        counts = promised_and_delivered(schedule_id, since, until)
        return Response({**page, "window": shown_window, "counts": counts})


class BackfillView(ApiView):
    @describe({200: BackfillOutput}, body=BackfillInput)
    def post(self, request: Request, schedule_id: UUID) -> Response:
        fields = read_body(request, BackfillInput)
        return past_deadlocks(lambda: self._backfill(request, schedule_id, fields))

    def _backfill(self, request: Request, schedule_id: UUID, fields: dict[str, Any]) -> Response:
        actor = actor_of(request)
        schedule = get_schedule(actor, schedule_id, needs=Role.ADMIN)
        window = {"since": fields["since"], "until": fields["until"], "only_missed": fields["only_missed"]}
        if fields["dry_run"]:
            found = backfill(schedule_id, **window, is_dry_run=True)
        else:
            with deed(actor, "scheduled_job.backfill", schedule) as doing:
                found = backfill(schedule_id, **window)
                doing.says(**window, jobs=len(found.job_ids))
        shown = {"due_times": found.due_times, "job_ids": [str(id_) for id_ in found.job_ids]}
        return Response({"dry_run": fields["dry_run"], "count": len(found.due_times), **shown})
