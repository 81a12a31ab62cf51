"""Input fields that take exactly one JSON type each: nothing is guessed, nothing converted silently."""

# ruff: noqa: D102 - REST framework names the methods, the class says what they let through

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import empty

from scheduler_project.lib.sealed_json import masked

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d{1,9})?)([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


class Text(serializers.CharField):
    """A JSON string. Blanks around it are not part of it unless ``trim_whitespace=False``."""

    default_error_messages = {"invalid": "must be a string"}

    def run_validation(self, data: Any = empty) -> Any:
        # Before the parent, which turns whatever it gets into text to see whether that is blank.
        if not (data is None or data is empty or isinstance(data, str)):
            self.fail("invalid")
        return super().run_validation(data)


class Email(Text, serializers.EmailField):
    """An e-mail address; ``A@Example.com`` comes out as it is written."""


class Choice(serializers.ChoiceField):
    """One of a few strings."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data not in self.choices:
            raise ValidationError(f"must be one of {', '.join(map(str, self.choices))}")
        return data


class Whole(serializers.IntegerField):
    """A JSON number without a fraction; no string, no boolean. Always give it bounds."""

    default_error_messages = {"invalid": "must be a whole number"}

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return data


class Digits(serializers.IntegerField):
    """A whole number in a query string: ASCII digits, nothing else."""

    default_error_messages = {"invalid": "must be a whole number"}

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, str) or not _DIGITS.fullmatch(data):
            self.fail("invalid")
        return int(data)


class Number(serializers.FloatField):
    """A finite JSON number; no string, no boolean."""

    default_error_messages = {"invalid": "must be a finite number"}

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        try:
            value = float(data)
        except OverflowError:
            self.fail("invalid")
        if not math.isfinite(value):
            self.fail("invalid")
        return value


class Bool(serializers.BooleanField):
    """true or false, neither quoted nor a number."""

    default_error_messages = {"invalid": "must be true or false"}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Flag(serializers.BooleanField):
    """The words true or false in a query string."""

    default_error_messages = {"invalid": "must be true or false"}

    def to_internal_value(self, data: Any) -> bool:
        if data not in ("true", "false"):
            self.fail("invalid", input=data)
        return bool(data == "true")


class Id(serializers.UUIDField):
    """A UUID in its usual form with dashes."""

    default_error_messages = {"invalid": "must be a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057"}

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str) or not _UUID.fullmatch(data):
            self.fail("invalid")
        return UUID(data)


class Moment(serializers.DateTimeField):
    """A time with its offset from UTC (RFC 3339); comes out in UTC."""

    default_error_messages = {"invalid": "must be a time with a zone, such as 2026-12-24T18:30:00Z"}

    def to_internal_value(self, value: Any) -> datetime:
        match = _TIME.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            self.fail("invalid")
        day, clock, offset = match.groups()
        try:
            moment = datetime.fromisoformat(f"{day}T{clock}{offset.upper()}")
            return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail("invalid")


class AnyJson(serializers.Field[Any, Any, Any, Any]):
    """Any JSON value; whether it can be stored is for ``json_gate`` to say. Sealed secrets come out masked."""

    json_schema: Mapping[str, Any] = {}

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return masked(value)


class Input(serializers.Serializer[Any]):
    """A JSON object with known fields only: a misspelt name is refused instead of being ignored."""

    def to_internal_value(self, data: Any) -> Any:
        errors: dict[str, Any] = {}
        value: Any = None
        try:
            value = super().to_internal_value(data)
        except ValidationError as error:
            if not isinstance(error.detail, dict):
                raise
            errors = dict(error.detail)
        if isinstance(data, Mapping):
            known = ", ".join(sorted(self.fields)) or "none"
            unknown = [str(name) for name in data if name not in self.fields]
            errors.update({name: [f"is not a known field; known: {known}"] for name in unknown})
        if errors:
            raise ValidationError(errors)
        return value
