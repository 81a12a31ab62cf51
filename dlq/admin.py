"""Django admin for dead letters."""

from __future__ import annotations

from django.contrib import admin

from dlq.models import DeadLetter
from scheduler_project.lib.admin import ReadOnlyAdmin


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    list_display = ("job_type", "queue", "failure_reason", "attempt_count", "moved_at", "resolved", "resolution_action")
    list_filter = ("resolved", "resolution_action")
    list_select_related = ("queue",)
    search_fields = ("=id", "=job__id", "job_type")
    ordering = ("-id",)
