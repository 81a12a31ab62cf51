"""A project in which every text that a stranger can hand in is hostile."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Now

from accounts.models import User
from dlq.models import DeadLetter
from jobs.models import (
    Alert,
    AlertRule,
    CircuitBreaker,
    EventSubscription,
    Job,
    JobBatch,
    JobExecution,
    JobLog,
    LeaderTerm,
    Operation,
    ScheduledJob,
    Worker,
)
from orgs.models import ApiKey, AuditEntry, Organization, Project
from queues.models import Queue, RetryPolicy

#: Markup that would act, both quotes, letters and marks that turn the text around, colours of a terminal, a bell.
HOSTILE = "<svg onload=alert(1)>\"'&{{7*7}}\u202eשלום\u2066\x1b[31mred\x1b[0m\x1b]0;title\x07\x07\x7f\x9b\u200b💥"
BIG = HOSTILE + "x" * 5_000_000
LOG_LINES = 600
_SMALL = {HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}], "deep": [[[[[[[[HOSTILE]]]]]]]]}
_VALUE = {**_SMALL, "big": BIG}


def spoil(project: Project, job: Job) -> None:
    """Put hostile texts wherever one can stand; around what the doors check, as an older release or SQL could have."""
    Organization.objects.update(name=HOSTILE, egress_deny=[HOSTILE])
    Project.objects.update(name=HOSTILE)
    # Unique in a project: each has its own beginning, and the hostile part.
    named: list[tuple[Any, int]] = [
        (Queue, 100), (RetryPolicy, 100), (ScheduledJob, 200), (AlertRule, 100), (ApiKey, 100), (CircuitBreaker, 300),
        (JobBatch, 200), (EventSubscription, 100),
    ]  # fmt: skip
    for model, most in named:
        _rename(model, most)
    Queue.objects.filter(is_paused=True).update(paused_reason=HOSTILE)
    User.objects.update(full_name=HOSTILE)
    _spoil_jobs(job)
    ScheduledJob.objects.update(
        job_type=HOSTILE, payload_template=_SMALL, last_error=HOSTILE, last_error_at=Now(), is_paused=True,
        paused_reason=HOSTILE,
    )  # fmt: skip
    JobBatch.objects.update(callback_error=HOSTILE)
    Worker.objects.update(hostname=HOSTILE, version=HOSTILE[:40], subscribed_queues=[HOSTILE])
    LeaderTerm.objects.create(hostname=HOSTILE, pid=1, backend_pid=1, acquired_at=Now(), renewed_at=Now())
    AlertRule.objects.update(emails=[HOSTILE], webhook_url=HOSTILE)
    Alert.objects.create(
        rule_id=AlertRule.objects.order_by("pk")[0].pk, project=project, rule_name=HOSTILE[:100],
        kind="failure_rate", state="firing", value=1, threshold=1, since=Now(), fired_at=Now(),
        resolution=HOSTILE, details={HOSTILE: HOSTILE},
    )  # fmt: skip
    EventSubscription.objects.update(url=HOSTILE, last_error=HOSTILE, last_error_at=Now())
    Operation.objects.update(reason=HOSTILE, last_error=HOSTILE, stopped_because=HOSTILE)
    change = {HOSTILE: HOSTILE, "reason": BIG}
    AuditEntry.objects.update(
        action=HOSTILE[:60], target_type=HOSTILE[:40], before=change, after=change, request_id=HOSTILE[:64]
    )
    for kind, target in (("job", job.pk), ("project", project.pk), ("organization", project.organization_id)):
        AuditEntry.objects.create(
            organization_id=project.organization_id, project_id=project.pk, user=User.objects.first(),
            action=HOSTILE[:60], target_type=kind, target_id=str(target), after=change,
        )  # fmt: skip


def _rename(model: Any, most: int) -> None:
    for number, row in enumerate(model.objects.order_by("pk")):
        model.objects.filter(pk=row.pk).update(name=f"{number}{HOSTILE}"[:most])


def _spoil_jobs(job: Job) -> None:
    Job.objects.update(
        job_type=HOSTILE, payload=_SMALL, error_message=HOSTILE, circuit=HOSTILE, trace_id=HOSTILE[:64],
        progress_note=HOSTILE, concurrency_key=HOSTILE,
    )  # fmt: skip
    JobExecution.objects.update(error_message=HOSTILE, error_stack=HOSTILE)
    DeadLetter.objects.update(job_type=HOSTILE, failure_reason=HOSTILE, last_error=HOSTILE, payload_snapshot=_SMALL)
    one: Any = Job.objects.filter(pk=job.pk)
    one.update(payload=_VALUE, result=_VALUE, error_message=BIG, idempotency_key=HOSTILE)
    JobExecution.objects.filter(job=job).update(error_message=BIG, error_stack=BIG)
    DeadLetter.objects.filter(job=job).update(last_error=BIG, payload_snapshot=_VALUE)
    execution = JobExecution.objects.filter(job=job).order_by("-id").first()
    assert execution is not None
    lines = [HOSTILE + "y" * 10_000] * (LOG_LINES - 1) + [BIG]
    JobLog.objects.bulk_create(
        JobLog(
            execution_id=execution.pk, job_id=job.pk, project_id=job.project_id, ts=Now(), level="warning", message=text
        )
        for text in lines
    )
