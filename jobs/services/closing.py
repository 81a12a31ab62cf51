"""Taking queues and projects out of service; here because their jobs have a say in it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from jobs.models import Job
from jobs.states import IN_FLIGHT, JobStatus
from orgs import services as orgs
from orgs.models import Project
from queues import services as queues
from queues.models import Queue
from scheduler_project.lib.errors import Conflict


def delete_queue(queue: Queue) -> None:
    """Delete a queue whose jobs have all ended.

    Raises:
        Conflict: jobs are waiting or running in it, or it was deleted already.
    """
    with queues.locked(queue.pk):
        if has_unfinished_jobs(queue):
            raise Conflict("The queue still has unfinished jobs: cancel them, or let them end, and try again.")
        queues.hide_queue(queue)


def delete_project(project: Project) -> None:
    """Delete a project with its queues; all their jobs must have ended. Its keys are refused from now on.

    Raises:
        Conflict: a queue has unfinished jobs; nothing was deleted.
    """
    with transaction.atomic():
        # In the order of their ids: of two who delete at once none waits for the other's lock in a circle.
        for queue in Queue.objects.filter(project=project, deleted_at=None).order_by("pk"):
            delete_queue(queue)
        orgs.delete_project(project)


def has_unfinished_jobs(queue: Queue) -> bool:
    """Is a job of this queue waiting or held by a worker?"""
    jobs = Job.objects.filter(queue=queue)
    # One probe for each partial index; "not ended" as one condition would read the queue's whole history.
    kinds = (
        Q(status__in=sorted(IN_FLIGHT)),
        Q(status=JobStatus.QUEUED.value),
        Q(status=JobStatus.SCHEDULED.value, is_blocked=False),
        Q(status=JobStatus.SCHEDULED.value, is_blocked=True),
    )
    return any(jobs.filter(kind).exists() for kind in kinds)
