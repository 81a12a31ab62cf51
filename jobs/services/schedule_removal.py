"""Deleting a schedule: its ledger goes with it, its jobs stay and belong to no schedule any more."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from jobs.events import SCHEDULE, tell
from jobs.models import Job, ScheduledJob, ScheduleFire
from jobs.states import IN_FLIGHT, WAITING
from scheduler_project.lib.errors import Conflict, NotFound

#: More kept jobs, or rows in the ledger, than one transaction should touch.
MOST_JOBS, MOST_FIRES = 5_000, 50_000


def delete_schedule(schedule_id: UUID) -> None:
    """Delete a schedule whose jobs have all ended.

    Raises:
        NotFound: it is gone already.
        Conflict: a job has not ended, or it has left more behind than can be let go of at once; nothing is changed.
    """
    with transaction.atomic():
        schedule = ScheduledJob.objects.select_for_update(of=("self",)).filter(pk=schedule_id).first()
        if schedule is None:
            raise NotFound("There is no such schedule.")
        _let_go_of_jobs(schedule)
        fires = ScheduleFire.objects.filter(scheduled_job=schedule)
        if fires.order_by("-due_at")[: MOST_FIRES + 1].count() > MOST_FIRES:
            raise Conflict(f"Its ledger has more than {MOST_FIRES:,} due times. Deactivate it instead.")
        fires.delete()
        # By a query of its own: the collector would take the jobs along.
        rows = ScheduledJob.objects.filter(pk=schedule_id)
        rows._raw_delete(rows.db)
        tell(SCHEDULE, schedule.project_id, schedule_id, "changed")


def _let_go_of_jobs(schedule: ScheduledJob) -> None:
    own = Job.objects.filter(scheduled_job=schedule).order_by("-id").values_list("pk", "status")
    jobs = list(own[: MOST_JOBS + 1])
    if any(status in WAITING | IN_FLIGHT for _, status in jobs):
        raise Conflict("A job of this schedule has not ended: cancel it, or let it end, and try again.")
    if len(jobs) > MOST_JOBS:
        raise Conflict(
            f"More than {MOST_JOBS:,} of its jobs are still kept. Deactivate it, and delete it when retention has "
            "removed them."
        )
    # In the order of their ids, as everybody locks jobs.
    ids = sorted(pk for pk, _ in jobs)
    list(Job.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk"))
    Job.objects.filter(pk__in=ids).update(scheduled_job=None)
