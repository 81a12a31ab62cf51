"""Django admin for accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db.models import Model
from django.http import HttpRequest

from accounts.models import RefreshFamily, User
from scheduler_project.lib.admin import LargeTableAdmin, ReadOnlyAdmin

if TYPE_CHECKING:  # generic for the type checker alone
    AnyUserAdmin = UserAdmin[User]
else:
    AnyUserAdmin = UserAdmin


@admin.register(User)
class AccountAdmin(LargeTableAdmin, AnyUserAdmin):
    list_display = ("email", "full_name", "is_active", "is_staff", "created_at")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("email", "full_name")
    ordering = ("email",)
    readonly_fields = ("last_login", "created_at", "updated_at")
    fieldsets = (
        (None, {"fields": ("email", "password", "full_name")}),
        ("May", {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        ("When", {"fields": ("last_login", "created_at", "updated_at")}),
    )
    add_fieldsets = ((None, {"classes": ("wide",), "fields": ("email", "full_name", "password1", "password2")}),)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False  # close the account instead: is_active


@admin.register(RefreshFamily)
class RefreshFamilyAdmin(ReadOnlyAdmin):
    list_display = ("id", "user", "created_at", "expires_at", "revoked_at")
    list_filter = ("revoked_at",)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    ordering = ("-id",)
