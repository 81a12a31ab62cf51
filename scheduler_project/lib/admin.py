"""What every page of Django admin shares: nothing counts a large table, and what has a life cycle is only looked at."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import JSONField, Model, QuerySet
from django.http import HttpRequest

from scheduler_project.lib.sealed_json import masked

if TYPE_CHECKING:  # generic for the type checker alone
    AnyPaginator = Paginator[Any]
    AnyAdmin = admin.ModelAdmin[Any]
else:
    AnyPaginator, AnyAdmin = Paginator, admin.ModelAdmin

#: So many rows are paged through; who looks for an older one filters or searches.
MAX_COUNTED = 1_000


class BoundedPaginator(AnyPaginator):
    """Counts no further than MAX_COUNTED rows."""

    @cached_property
    def count(self) -> int:
        """The number of rows, or MAX_COUNTED if there are more."""
        rows = self.object_list
        return rows.order_by()[:MAX_COUNTED].count() if isinstance(rows, QuerySet) else len(rows)


class LargeTableAdmin(AnyAdmin):
    """For tables without end."""

    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0


class KeptAdmin(AnyAdmin):
    """Rows may be changed but not removed: others hang on them."""

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False


class ReadOnlyAdmin(LargeTableAdmin):
    """For rows that only the life cycle or a service writes."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Model | None:
        """The row for its page, with a mask for each sealed secret; it is only looked at, never saved."""
        row: Model | None = super().get_object(request, object_id, from_field)
        for field in () if row is None else row._meta.concrete_fields:
            if isinstance(field, JSONField):
                setattr(row, field.attname, masked(getattr(row, field.attname)))
        return row

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False
