"""Shapes of members, API keys and the audit log."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from orgs.models import ApiKey, Role
from orgs.services import MAX_KEY_NAME_CHARS, MAX_OVERLAP_SECS
from scheduler_project.lib.rest.fields import AnyJson, Choice, Id, Input, Moment, Text, Whole
from scheduler_project.lib.rest.paging import PageQuery

DAY_S = 86_400


class MemberInput(Input):
    email = Text(max_length=254)
    role = Choice(choices=Role.values)


class MemberPatch(Input):
    role = Choice(choices=Role.values)


class MemberOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    user_id = serializers.UUIDField()
    email = serializers.CharField(source="user.email")
    full_name = serializers.CharField(source="user.full_name")
    role = serializers.CharField()
    created_at = serializers.DateTimeField()


class KeyInput(Input):
    name = Text(max_length=MAX_KEY_NAME_CHARS)
    scope = Choice(choices=ApiKey.Scope.values, default=ApiKey.Scope.MANAGE.value)
    expires_at = Moment(default=None, allow_null=True)


class RotateInput(Input):
    overlap_secs = Whole(min_value=0, max_value=MAX_OVERLAP_SECS, default=0)


class KeyOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    name = serializers.CharField()
    prefix = serializers.CharField()
    scope = serializers.CharField()
    created_by = serializers.UUIDField(source="created_by_id", allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class NewKeyOutput(KeyOutput):
    api_key = serializers.CharField()


class SecretRotateInput(Input):
    overlap_secs = Whole(min_value=0, max_value=MAX_OVERLAP_SECS, default=DAY_S)


class SecretOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    prefix = serializers.CharField()
    created_by = serializers.UUIDField(source="created_by_id", allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewSecretOutput(SecretOutput):
    secret = serializers.CharField(help_text="Shown now and never again; receivers check signatures with it.")


class TicketOutput(serializers.Serializer[Any]):
    ticket = serializers.CharField(help_text="For ?ticket= of /ws/events and /api/events; good once.")
    expires_in = serializers.IntegerField(help_text="Seconds.")


class AuditQuery(PageQuery):
    org_id = Id()
    target_type = Text(max_length=40, required=False)
    target_id = Text(max_length=80, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "target_id" in attrs and "target_type" not in attrs:
            raise serializers.ValidationError({"target_type": ["is needed beside target_id"]})
        return super().validate(attrs)


class AuditOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField(allow_null=True)
    user_id = serializers.UUIDField(allow_null=True)
    user_email = serializers.CharField(source="user.email", default=None, allow_null=True)
    api_key_id = serializers.UUIDField(allow_null=True)
    api_key_name = serializers.CharField(source="api_key.name", default=None, allow_null=True)
    action = serializers.CharField()
    target_type = serializers.CharField()
    target_id = serializers.CharField()
    before = AnyJson(allow_null=True)
    after = AnyJson(allow_null=True)
    request_id = serializers.CharField()
    at = serializers.DateTimeField()
