"""Rows are shown as REST framework's serializer would show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from rest_framework import serializers

from scheduler_project.lib.rest.rows import row_of

MOMENT = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)


class Shape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    short = serializers.UUIDField(format="hex")
    name = serializers.CharField()
    count = serializers.IntegerField()
    is_on = serializers.BooleanField()
    rate = serializers.FloatField(allow_null=True)
    at = serializers.DateTimeField(allow_null=True)
    day = serializers.DateTimeField(format="%d.%m.%Y")
    inner = serializers.CharField(source="part.name")


@dataclass(frozen=True)
class Part:
    name: str = "inner"


class Label(str):
    """What an enumeration's value is: text, and more."""

    __slots__ = ()


@dataclass
class Row:
    id: object = UUID("01a22d09-abc6-7e5f-a44a-0c0f243b3201")
    short: object = UUID("01a22d09-abc6-7e5f-a44a-0c0f243b3201")
    name: object = "mail"
    count: object = 3
    is_on: object = True
    rate: object = 0.5
    at: object = MOMENT
    day: object = MOMENT
    part: Part = Part()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rate": None, "at": None},
        {"rate": Decimal("1.5"), "count": True, "is_on": 1},
        {"at": MOMENT.replace(microsecond=0)},
        {"at": datetime(2026, 11, 30, 12, tzinfo=timezone(timedelta(hours=2)))},
        {"at": "2026-11-30T12:00:00Z", "id": "01a22d09-abc6-7e5f-a44a-0c0f243b3201"},
        {"name": Label("mail"), "part": Part("other")},
    ],
)
def test_a_row_is_shown_as_by_its_serializer(changes: dict[str, Any]) -> None:
    row = Row(**changes)

    shown = row_of(Shape())(row)

    assert shown == Shape(row).data
    assert [type(value) for value in shown.values()] == [type(value) for value in Shape(row).data.values()]
