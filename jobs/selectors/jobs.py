"""One job as screens and answers show it; lists of jobs are in ``job_lists``."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Case, F, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce

from jobs.models import Job
from jobs.states import IN_FLIGHT, TERMINAL
from orgs.access import Actor, get_visible
from orgs.models import Role
from queues.backoff import DEFAULT_RULE


def get_job(actor: Actor, job_id: UUID, *, needs: Role) -> Job:
    """One job with everything. Raises NotFound or Forbidden."""
    return get_visible(with_attempts(Job.objects.filter(pk=job_id)), actor, "project", needs=needs, what="job")


def get_job_with_queue(actor: Actor, job_id: UUID, *, needs: Role) -> Job:
    """The same with its queue, project and organization, in the same statement."""
    jobs = with_attempts(Job.objects.filter(pk=job_id)).select_related("queue__project__organization")
    return get_visible(jobs, actor, "project", needs=needs, what="job")


def has_ended(job_id: UUID) -> bool:
    """Is the job in a state that no worker will change, or gone?"""
    return Job.objects.filter(pk=job_id).values_list("status", flat=True).first() in {None, *TERMINAL}


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
