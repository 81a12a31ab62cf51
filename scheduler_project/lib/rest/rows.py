"""Many rows of one shape: what REST framework finds out about each field for every row is found out once."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from rest_framework import serializers


def row_of(serializer: serializers.Serializer[Any]) -> Callable[[Any], dict[str, Any]]:
    """A function that shows one object as the serializer would: fields that are attributes, none left out."""
    fields = [(str(field.field_name), _getter(field), field.to_representation) for field in serializer._readable_fields]

    def show(row: Any) -> dict[str, Any]:
        shown = {}
        for name, get, represent in fields:
            value = get(row)
            shown[name] = None if value is None else represent(value)
        return shown

    return show


def _getter(field: serializers.Field[Any, Any, Any, Any]) -> Callable[[Any], Any]:
    return field.get_attribute if field.source in ("*", None) else attrgetter(str(field.source))
