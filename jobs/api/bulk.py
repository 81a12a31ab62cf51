"""Up to a thousand jobs in one request."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.answers import BulkOutput
from jobs.api.items import read_items, shown_outcome
from jobs.api.serializers import BulkInput
from jobs.lifecycle.submit import Submitted
from jobs.services.bulk import Item, submit_bulk
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Project
from scheduler_project.lib.rest.describe import describe
from scheduler_project.lib.rest.views import ApiView, read_body


class BulkView(ApiView):
    counted_field = "jobs"

    @describe(
        {201: BulkOutput, 200: BulkOutput},
        body=BulkInput,
        example={
            "jobs": [{"queue": "mail", "job_type": "mail.send", "payload": {"n": 1}, "idempotency_key": "mail-1"}]
        },
    )
    def post(self, request: Request) -> Response:
        body, actor = read_body(request, BulkInput), actor_of(request)
        items = read_items(actor, body["jobs"])
        first = next((item for item in items if isinstance(item, Item)), None)
        if first is None:
            outcomes = submit_bulk(items, is_atomic=body["atomic"])
        else:
            with deed(actor, "job.submit_bulk", Project(pk=first.queue.project_id)) as doing:
                outcomes = submit_bulk(items, is_atomic=body["atomic"])
                doing.says(submitted=sum(isinstance(o, Submitted) and o.is_new for o in outcomes))
        counts = {
            "submitted": sum(isinstance(outcome, Submitted) and outcome.is_new for outcome in outcomes),
            "replayed": sum(isinstance(outcome, Submitted) and not outcome.is_new for outcome in outcomes),
            "failed": sum(not isinstance(outcome, Submitted) for outcome in outcomes),
        }
        shown = [shown_outcome(index, outcome) for index, outcome in enumerate(outcomes)]
        return Response({"results": shown, **counts}, status=201 if counts["submitted"] else 200)
