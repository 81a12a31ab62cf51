"""Jobs as screens and answers show them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Case, F, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce

from jobs.models import Job
from jobs.states import IN_FLIGHT
from orgs.access import Actor, get_visible, project_ids
from orgs.models import Role
from queues.backoff import DEFAULT_RULE


def list_jobs(
    actor: Actor, *, queue_id: UUID | None = None, status: str | None = None, job_type: str | None = None
) -> QuerySet[Job]:
    """The jobs an actor sees, newest first, without payloads and results. Reads his projects at once.

    With a queue its caller has made sure that the actor sees it.
    """
    jobs = Job.objects.without_payload().order_by("-id")
    jobs = jobs.in_projects(project_ids(actor)) if queue_id is None else jobs.filter(queue_id=queue_id)
    if status is not None:
        jobs = jobs.filter(status=status)
    if job_type is not None:
        jobs = jobs.filter(job_type=job_type)
    return with_attempts(jobs)


def get_job(actor: Actor, job_id: UUID, *, needs: Role) -> Job:
    """One job with everything. Raises NotFound or Forbidden."""
    return get_visible(with_attempts(Job.objects.filter(pk=job_id)), actor, "project", needs=needs, what="job")


def with_attempts(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Adds ``attempt``, the number of the attempt that runs or of the last one (0 before the first), and
    ``max_attempts`` as the job's own number, its policy, its queue's policy or the default say.
    """
    return jobs.annotate(
        attempt=F("attempt_count")
        + Case(When(status__in=sorted(IN_FLIGHT), then=1), default=0, output_field=IntegerField()),
        max_attempts=Coalesce(
            "max_attempts_override",
            "retry_policy__max_attempts",
            "queue__default_retry_policy__max_attempts",
            Value(DEFAULT_RULE.max_attempts),
        ),
    )


def get_first_job(job_id: UUID, *, job_type: str, payload: Any) -> Job:
    """The job that a repeated submission met, with ``is_same_work``: was it submitted with this type and payload?"""
    jobs = with_attempts(Job.objects.filter(pk=job_id))
    same = Case(When(Q(job_type=job_type) & Q(payload=payload), then=Value(True)), default=Value(False))
    return jobs.annotate(is_same_work=same).get()
