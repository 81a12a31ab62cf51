"""Input fields that take exactly one JSON type each: nothing is guessed, nothing converted silently."""

# ruff: noqa: D102 - REST framework names the methods, the class says what they let through

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import SkipField, empty

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
            value = self._shortly(data) if type(data) is dict else super().to_internal_value(data)
        except ValidationError as error:
            if not isinstance(error.detail, dict):
                raise
            errors = dict(error.detail)
        if isinstance(data, Mapping):
            unknown = [str(name) for name in data if name not in self.fields]
            if unknown:
                known = ", ".join(sorted(self.fields)) or "none"
                errors.update({name: [f"is not a known field; known: {known}"] for name in unknown})
        if errors:
            raise ValidationError(errors)
        return value

    def _shortly(self, data: dict[str, Any]) -> dict[str, Any]:
        """As the parent does it; but most fields are mostly not sent, and asking each for its default takes long."""
        if getattr(self.root, "partial", False):
            return cast("dict[str, Any]", super().to_internal_value(data))
        value: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        for name, field, check, when_absent in self._plan:
            if when_absent is not None and name not in data:
                value.update(when_absent())
                continue
            try:
                found = field.run_validation(data.get(name, empty))
                value[name] = found if check is None else check(found)
            except ValidationError as error:
                errors[name] = error.detail
            except SkipField:
                pass
        if errors:
            raise ValidationError(errors)
        return value

    @cached_property
    def _plan(self) -> list[tuple[str, serializers.Field[Any, Any, Any, Any], _Check | None, _WhenAbsent | None]]:
        """Each field with the method that checks its value further, and what its absence means if that is plain."""
        plan = []
        for name, field in self.fields.items():
            if field.source != name or field.read_only:
                raise TypeError(f"{type(self).__name__}.{name}: a field of an input is what its name says")
            check: _Check | None = getattr(self, f"validate_{name}", None)
            plan.append((name, field, check, None if field.required or check else _when_absent(name, field)))
        return plan


_Check = Callable[[Any], Any]
_WhenAbsent = Callable[[], dict[str, Any]]


def _when_absent(name: str, field: serializers.Field[Any, Any, Any, Any]) -> _WhenAbsent:
    default: Any = field.default
    if default is empty:
        return dict
    return (lambda: {name: default()}) if callable(default) else (lambda: {name: default})
