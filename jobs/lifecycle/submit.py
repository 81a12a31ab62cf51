"""submit: (new) -> queued or scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from jobs.events import jobs_changed
from jobs.lifecycle.placing import Placed, Submitted, add_edges, answers_of, insert, refuse_deleted, wake_released
from jobs.models import Job
from jobs.new_job import NewJob, Parent, checked, prefix_of, sealed
from jobs.states import TERMINAL, JobStatus
from queues.models import Queue
from scheduler_project.lib.errors import FieldError, ValidationFailed
from scheduler_project.lib.ids import uuid7s

__all__ = ["NewJob", "Parent", "Submitted", "submit_job", "submit_jobs", "submit_to_queues"]


def submit_job(queue: Queue, job: NewJob) -> Submitted:
    """Submit one job. Joins the caller's transaction: rolled back, it never existed.

    Raises:
        ValidationFailed: naming the field and what is allowed.
        Conflict: the queue was deleted.
    """
    return submit_jobs(queue, [job])[0]


def submit_jobs(queue: Queue, jobs: Sequence[NewJob]) -> list[Submitted]:
    """Submit many jobs to one queue, in one round trip if none waits for another; answers in the order of ``jobs``.

    Raises:
        ValidationFailed: nothing was submitted; with more than one job the fields read ``jobs[3].run_at``.
        Conflict: the queue was deleted.
    """
    return submit_to_queues([(queue, job) for job in jobs])


def submit_to_queues(items: Sequence[tuple[Queue, NewJob]]) -> list[Submitted]:
    """The same for jobs of several queues of one project."""
    for queue in {id(queue): queue for queue, _ in items}.values():
        refuse_deleted(queue)
    jobs = [job for _, job in items]
    texts = sealed(jobs, checked(jobs))
    ids = uuid7s(len(items))
    placed = [Placed(id_, queue, job, text) for id_, (queue, job), text in zip(ids, items, texts, strict=True)]
    if any(job.depends_on for _, job in items):
        return _submit_dependent(placed)
    return answers_of(placed, insert(placed))


def _submit_dependent(placed: list[Placed]) -> list[Submitted]:
    """Insert jobs that wait for existing ones. The parents are locked, so none ends unseen meanwhile."""
    with transaction.atomic():
        edges = [(item, parent) for item in placed for parent in item.job.depends_on]
        statuses = _lock_parents(placed[0].queue.project_id, placed)
        open_edges = {item.id for item, parent in edges if not _is_satisfied(parent, statuses[parent.job_id])}
        placed = [item._replace(is_blocked=item.id in open_edges) for item in placed]
        inserted = insert(placed)
        new_edges = [(item, parent) for item, parent in edges if item.id.int in inserted]
        add_edges(placed[0].queue.project_id, [(item.id, parent) for item, parent in new_edges])
        Job.objects.filter(id__in=statuses).update(has_dependants=True)
        if any(status in TERMINAL for status in statuses.values()):
            wake_released(Job.claims.release_of(ids=[str(id_) for id_ in statuses]))
            jobs_changed([], parents=statuses)
        return answers_of(placed, inserted)


def _lock_parents(project_id: UUID, placed: Sequence[Placed]) -> dict[UUID, str]:
    wanted = {parent.job_id for item in placed for parent in item.job.depends_on}
    rows = Job.objects.filter(project_id=project_id, id__in=wanted).order_by("id").select_for_update(no_key=True)
    statuses = dict(rows.values_list("id", "status"))
    errors = [
        FieldError(f"{prefix_of(i, placed)}depends_on[{k}]", "there is no such job in this project")
        for i, item in enumerate(placed)
        for k, parent in enumerate(item.job.depends_on)
        if parent.job_id not in statuses
    ]
    if errors:
        raise ValidationFailed(f"{errors[0].field}: {errors[0].message}", errors)
    return statuses


def _is_satisfied(parent: Parent, status: str) -> bool:
    return status == JobStatus.COMPLETED or (parent.on_failure == "run" and status in TERMINAL)
