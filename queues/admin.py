"""Django admin for queues and retry policies."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from queues.models import Queue, RetryPolicy
from queues.services import locked
from scheduler_project.lib.admin import KeptAdmin, LargeTableAdmin


@admin.register(Queue)
class QueueAdmin(KeptAdmin, LargeTableAdmin):
    list_display = ("name", "project", "priority", "max_concurrency", "is_paused", "created_at", "deleted_at")
    list_filter = ("is_paused",)
    list_select_related = ("project",)
    search_fields = ("name", "project__slug")
    raw_id_fields = ("project", "default_retry_policy")
    ordering = ("-id",)
    readonly_fields = ("id", "created_at", "updated_at", "deleted_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # A queue never changes its project: its jobs' keys carry it.
        return self.readonly_fields if obj is None else (*self.readonly_fields, "project")

    def save_model(self, request: HttpRequest, obj: Queue, form: ModelForm[Queue], change: Any) -> None:
        with locked(obj.pk):
            super().save_model(request, obj, form, change)


@admin.register(RetryPolicy)
class RetryPolicyAdmin(KeptAdmin, LargeTableAdmin):
    list_display = ("name", "project", "strategy", "base_delay_ms", "max_delay_ms", "max_attempts", "jitter")
    list_filter = ("strategy",)
    list_select_related = ("project",)
    search_fields = ("name", "project__slug")
    raw_id_fields = ("project",)
    ordering = ("-id",)
    readonly_fields = ("id", "created_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.readonly_fields if obj is None else (*self.readonly_fields, "project")
