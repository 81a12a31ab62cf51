"""The jobs of a filter as a file: CSV or a JSON object on each line, without payloads, which may hold secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from jobs.models import Job
from jobs.selectors.job_lists import JobFilter, page_of_jobs
from jobs.web.job_filter import Chosen
from jobs.web.jobs import MOST_QUEUES
from orgs.web.access import MemberRequest, member_view
from queues.models import Queue
from scheduler_project.lib.web.paging import id_or_none
from scheduler_project.lib.web.tables import FORMATS, as_file

#: Rows of one file, and of one statement.
MOST, STEP = 5_000, 1_000
COLUMNS = (
    "id", "job_type", "queue", "status", "priority", "attempt", "max_attempts", "created_at", "run_at", "completed_at",
    "batch_id", "scheduled_job_id", "idempotency_key", "error_message",
)  # fmt: skip


@require_safe
@member_view()
def export(request: MemberRequest) -> HttpResponse:
    """The newest MOST jobs that match; where there are more, the header Link leads to the next file."""
    kind = request.GET.get("format", "csv")
    kind = kind if kind in FORMATS else "csv"
    chosen, after = Chosen.of(request.GET), id_or_none(request.GET.get("after", ""))
    names = dict(Queue.objects.filter(project=request.project).values_list("pk", "name")[:MOST_QUEUES])
    wanted = chosen.filter_in(list(names), request.project.pk, request.now)
    # A type in several queues can not be looked for: no index would answer.
    jobs = [] if wanted is None else list(_read(wanted, after))
    rows = [_row(job, names) for job in jobs]
    answer = as_file(rows, COLUMNS, kind, f"jobs-{request.project.slug}-{request.now:%Y%m%d-%H%M%S}")
    if len(jobs) == MOST:
        query = request.GET.copy()
        query["after"] = str(jobs[-1].pk)
        answer["Link"] = f'<{request.path}?{query.urlencode()}>; rel="next"'
    return answer


def _read(wanted: JobFilter, after: Any) -> Iterator[Job]:
    left = MOST
    while left:
        page = page_of_jobs(wanted, cursor=after, rows=slice(0, min(STEP, left)))
        yield from page.jobs
        left -= len(page.jobs)
        if page.resume_below is not None:
            after = page.resume_below
        elif len(page.jobs) == STEP:
            after = page.jobs[-1].pk
        else:
            return


def _row(job: Job, names: dict[Any, str]) -> dict[str, Any]:
    row = {name: getattr(job, name) for name in COLUMNS if name != "queue"}
    return {**row, "queue": names.get(job.queue_id, "")}
