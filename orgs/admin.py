"""Django admin for organizations, projects and keys."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from orgs.models import ApiKey, AuditEntry, Organization, OrganizationMember, Project, TokenBucket, WebhookSecret
from scheduler_project.lib.admin import KeptAdmin, LargeTableAdmin, ReadOnlyAdmin


@admin.register(Organization)
class OrganizationAdmin(KeptAdmin, LargeTableAdmin):
    list_display = ("slug", "name", "created_at")
    search_fields = ("slug", "name")
    ordering = ("-id",)
    readonly_fields = ("id", "created_at")


@admin.register(OrganizationMember)
class OrganizationMemberAdmin(LargeTableAdmin):
    list_display = ("organization", "user", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("organization", "user")
    search_fields = ("organization__slug", "user__email")
    raw_id_fields = ("organization", "user")
    ordering = ("-id",)
    readonly_fields = ("id", "created_at")


@admin.register(Project)
class ProjectAdmin(KeptAdmin, LargeTableAdmin):
    list_display = ("slug", "organization", "name", "created_at", "deleted_at")
    list_filter = ("deleted_at",)
    list_select_related = ("organization",)
    search_fields = ("slug", "name", "organization__slug")
    raw_id_fields = ("organization", "created_by")
    ordering = ("-id",)
    # A row never leaves its organization: what hangs on it would change hands.
    readonly_fields = ("id", "organization", "created_by", "created_at", "updated_at", "deleted_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # a project is born with a key that is shown once, which this page can not


@admin.register(ApiKey)
class ApiKeyAdmin(KeptAdmin, LargeTableAdmin):
    list_display = ("name", "prefix", "project", "scope", "last_used_at", "expires_at", "revoked_at")
    list_filter = ("scope",)
    list_select_related = ("project",)
    search_fields = ("name", "prefix", "project__slug")
    ordering = ("-id",)
    readonly_fields = ("id", "project", "prefix", "scope", "created_by", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(WebhookSecret)
class WebhookSecretAdmin(ReadOnlyAdmin):
    list_display = ("prefix", "project", "created_at", "expires_at", "revoked_at")
    list_select_related = ("project",)
    search_fields = ("prefix", "project__slug")
    ordering = ("-id",)
    exclude = ("sealed",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "organization", "user", "api_key", "action", "target_type", "target_id")
    list_filter = ("action",)
    list_select_related = ("organization", "user", "api_key")
    search_fields = ("target_id", "request_id")
    ordering = ("-id",)


@admin.register(TokenBucket)
class TokenBucketAdmin(ReadOnlyAdmin):
    list_display = ("key", "tokens", "refilled_at")
    search_fields = ("key",)
    ordering = ("key",)
