"""Examples for the schema, made from the fields' names and kinds, so that each is whole and none is forgotten."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

ID = "0193f6c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f"
TIME = "2026-12-24T18:30:00Z"
_BY_NAME: dict[str, Any] = {
    "access": "eyJhbGciOi...",
    "action": "discarded",
    "api_key": "pk_live_...",
    "attempt": 1,
    "code": "queue_paused",
    "cron_expression": "0 3 * * *",
    "egress_allow": "*.example.com",
    "egress_deny": "203.0.113.0/24",
    "email": "ada@example.com",
    "emails": "ada@example.com",
    "error_message": None,
    "error_stack": None,
    "full_name": "Ada Lovelace",
    "hostname": "mailer-7",
    "idempotency_key": "invoice-42",
    "job_type": "mail.send",
    "key": "pk_live_...",
    "limit": 50,
    "max_attempts": 5,
    "message": "ok",
    "name": "mail",
    "next_cursor": None,
    "next_offset": None,
    "offset": 0,
    "password": "correct horse battery",
    "payload": {"to": "ada@example.com"},
    "prefix": "pk_live_AbC12d",
    "progress_percent": 40,
    "queue": "mail",
    "refresh": "eyJhbGciOi...",
    "slug": "mail",
    "timezone": "Europe/Berlin",
    "token_type": "Bearer",
}


def sample_of(shape: Any, *, only_required: bool = False) -> Any:
    """A value that a serializer or field could have."""
    if isinstance(shape, serializers.ListSerializer):
        return [sample_of(shape.child, only_required=only_required)]
    if isinstance(shape, serializers.Serializer):
        fields = {name: field for name, field in shape.fields.items() if field.required or not only_required}
        return {name: _of_field(name, field, only_required) for name, field in fields.items()}
    return _of_field("", shape, only_required)


def _of_field(name: str, field: Any, only_required: bool) -> Any:
    if isinstance(field, serializers.BaseSerializer):
        return sample_of(field, only_required=only_required)
    if isinstance(field, serializers.ListField):
        return [_of_field(name, field.child, only_required)]
    if isinstance(field, serializers.DictField):
        return {"a": _of_field(name, field.child, only_required)}
    if isinstance(field, serializers.ChoiceField):
        return next(iter(field.choices))
    if name in _BY_NAME and (_BY_NAME[name] is not None or field.allow_null):
        return _BY_NAME[name]
    return _of_kind(field)


def _of_kind(field: Any) -> Any:
    match field:
        case serializers.UUIDField():
            return ID
        case serializers.DateTimeField():
            return TIME
        case serializers.BooleanField():
            return True
        case serializers.IntegerField():
            return max(1, field.min_value or 0)
        case serializers.FloatField():
            return 1.5
        case serializers.CharField():
            return "text"
    return {"any": "JSON"}
