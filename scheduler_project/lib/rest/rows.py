"""Many rows of one shape: what REST framework finds out about each field for every row is found out once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from rest_framework import serializers

#: Fields that show a value as it is, if it is already of the type they would make of it.
_SHOWN_AS_THEY_ARE: dict[type[serializers.Field[Any, Any, Any, Any]], type] = {
    serializers.BooleanField: bool,
    serializers.IntegerField: int,
    serializers.FloatField: float,
    serializers.CharField: str,
}


def row_of(serializer: serializers.Serializer[Any]) -> Callable[[Any], dict[str, Any]]:
    """A function that shows one object as the serializer would: fields that are attributes, none left out."""
    fields = [
        (str(field.field_name), _getter(field), _SHOWN_AS_THEY_ARE.get(type(field)), _representation(field))
        for field in serializer._readable_fields
    ]

    def show(row: Any) -> dict[str, Any]:
        shown = {}
        for name, get, kind, represent in fields:
            value = get(row)
            shown[name] = value if value is None or type(value) is kind else represent(value)
        return shown

    return show


def _getter(field: serializers.Field[Any, Any, Any, Any]) -> Callable[[Any], Any]:
    return field.get_attribute if field.source in ("*", None) else attrgetter(str(field.source))


def _representation(field: serializers.Field[Any, Any, Any, Any]) -> Callable[[Any], Any]:
    if type(field) is serializers.UUIDField and field.uuid_format == "hex_verbose":
        return str
    if type(field) is serializers.DateTimeField and not hasattr(field, "format"):
        return lambda value: _in_utc(value) or field.to_representation(value)
    return field.to_representation


def _in_utc(value: object) -> str | None:
    """A moment of the database, which the field would look up the zone of the moment for; None: ask the field."""
    return f"{value.isoformat()[:-6]}Z" if isinstance(value, datetime) and value.tzinfo is UTC else None
