"""Django admin for the engine's tables: to look, not to touch. Their rows belong to the life cycle.

Payloads and the like are left out of lists, which would read them for every row.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs.models import (
    ArchivedJob,
    CircuitBreaker,
    Job,
    JobBatch,
    JobDependency,
    JobExecution,
    JobLog,
    LeaderTerm,
    Operation,
    ProofResult,
    ScheduledJob,
    ScheduleFire,
    Worker,
    WorkerHeartbeat,
)
from scheduler_project.lib.admin import ReadOnlyAdmin

# Dependencies have a pair for a primary key, which Django admin does not support: a job's page shows them.
MAX_SHOWN = 20


def _shown(edges: QuerySet[Any, Any]) -> str:
    first = list(edges[: MAX_SHOWN + 1])
    text = ", ".join(f"{id_} ({on_failure})" for id_, on_failure in first[:MAX_SHOWN])
    return text + (", …" if len(first) > MAX_SHOWN else "") or "nobody"


class WithoutLargeColumns(ReadOnlyAdmin):
    large_columns: tuple[str, ...] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Deferred for lists; the page of one row reads them when it shows them.
        return super().get_queryset(request).defer(*self.large_columns)


@admin.register(Job)
class JobAdmin(WithoutLargeColumns):
    list_display = ("id", "job_type", "queue", "status", "priority", "run_at", "attempt_count", "created_at")
    list_filter = ("status",)
    list_select_related = ("queue",)
    search_fields = ("=id", "=idempotency_key", "=trace_id")
    search_help_text = "A job's id, idempotency key or trace id"
    ordering = ("-id",)
    # The token is the right to end the attempt.
    exclude = ("lease_token",)
    readonly_fields = ("waits_for", "is_waited_for_by")
    large_columns = ("payload", "result")

    @admin.display(description="Waits for")
    def waits_for(self, job: Job) -> str:
        return _shown(JobDependency.objects.filter(job=job).values_list("depends_on_job_id", "on_failure"))

    @admin.display(description="Is waited for by")
    def is_waited_for_by(self, job: Job) -> str:
        return _shown(JobDependency.objects.filter(depends_on_job=job).values_list("job_id", "on_failure"))


@admin.register(JobExecution)
class JobExecutionAdmin(WithoutLargeColumns):
    list_display = ("id", "job_id", "attempt_number", "status", "worker_id", "finished_at", "duration_ms")
    list_filter = ("status",)
    search_fields = ("=id", "=job__id")
    ordering = ("-id",)
    raw_id_fields = ("job", "project")
    large_columns = ("result", "error_stack")


@admin.register(JobLog)
class JobLogAdmin(ReadOnlyAdmin):
    list_display = ("id", "ts", "job_id", "level", "message")
    list_filter = ("level",)
    search_fields = ("=job__id",)
    ordering = ("-id",)
    exclude = ("execution_id",)  # of a running attempt it is the lease token


@admin.register(ArchivedJob)
class ArchivedJobAdmin(WithoutLargeColumns):
    list_display = ("id", "job_type", "queue_id", "status", "completed_at", "archived_at")
    list_filter = ("status",)
    search_fields = ("=id",)
    ordering = ("-completed_at", "-id")
    large_columns = ("payload", "result")


@admin.register(ScheduledJob)
class ScheduledJobAdmin(ReadOnlyAdmin):
    list_display = ("name", "queue", "cron_expression", "timezone", "job_type", "is_active", "next_run_at")
    list_filter = ("is_active",)
    list_select_related = ("queue",)
    search_fields = ("name", "job_type")
    ordering = ("-id",)


@admin.register(ScheduleFire)
class ScheduleFireAdmin(ReadOnlyAdmin):
    list_display = ("scheduled_job", "due_at", "outcome", "reason", "job_id", "late_ms")
    list_filter = ("outcome",)
    list_select_related = ("scheduled_job",)
    search_fields = ("=job_id", "scheduled_job__name")
    ordering = ("-id",)


@admin.register(JobBatch)
class JobBatchAdmin(ReadOnlyAdmin):
    list_display = ("name", "project", "status", "total_jobs", "completed_jobs", "failed_jobs", "created_at")
    list_filter = ("status",)
    list_select_related = ("project",)
    search_fields = ("name",)
    ordering = ("-id",)


@admin.register(Operation)
class OperationAdmin(ReadOnlyAdmin):
    list_display = ("id", "project", "action", "state", "matched", "changed", "skipped", "failed", "created_at")
    list_filter = ("action", "state")
    list_select_related = ("project",)
    search_fields = ("=id",)
    ordering = ("-id",)


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ("hostname", "pid", "version", "status", "max_concurrency", "started_at", "last_seen_at")
    list_filter = ("status",)
    search_fields = ("=id", "hostname")
    ordering = ("-id",)


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("id", "worker", "ts", "active_job_count", "cpu_percent", "memory_mb")
    list_select_related = ("worker",)
    search_fields = ("=worker__id",)
    ordering = ("-id",)


@admin.register(LeaderTerm)
class LeaderTermAdmin(ReadOnlyAdmin):
    list_display = ("id", "hostname", "pid", "acquired_at", "renewed_at", "ended_at")
    search_fields = ("hostname",)
    ordering = ("-id",)


@admin.register(CircuitBreaker)
class CircuitBreakerAdmin(ReadOnlyAdmin):
    list_display = ("name", "project_id", "state", "recent", "allowance", "opened_at")
    list_filter = ("state",)
    search_fields = ("name",)
    ordering = ("-id",)


@admin.register(ProofResult)
class ProofResultAdmin(ReadOnlyAdmin):
    list_display = ("name", "verdict", "reason", "took_s", "version", "ended_at")
    list_filter = ("verdict", "name")
    search_fields = ("name",)
    ordering = ("-id",)
