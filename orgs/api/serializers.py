"""Shapes of organizations and projects."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from orgs.models import MAX_EGRESS_ENTRIES
from orgs.services import MAX_NAME_CHARS, MAX_SLUG_CHARS
from scheduler_project.lib.egress import MAX_HOST_CHARS
from scheduler_project.lib.rest.fields import Id, Input, Text
from scheduler_project.lib.rest.paging import PageQuery


def _entries(**options: Any) -> serializers.ListField:
    return serializers.ListField(child=Text(max_length=MAX_HOST_CHARS), max_length=MAX_EGRESS_ENTRIES, **options)


class OrganizationInput(Input):
    name = Text(max_length=MAX_NAME_CHARS)
    slug = Text(max_length=MAX_SLUG_CHARS, default="", allow_blank=True)


class ProjectInput(OrganizationInput):
    org_id = Id()


class ProjectsQuery(PageQuery):
    org_id = Id(required=False)


class OrganizationOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    slug = serializers.CharField()
    role = serializers.CharField(source="actor_role", default="owner")  # whoever has just made it owns it
    created_at = serializers.DateTimeField()


class EgressPatch(Input):
    egress_allow = _entries(required=False)
    egress_deny = _entries(required=False)


class OrganizationDetail(OrganizationOutput):
    egress_allow = _entries()
    egress_deny = _entries()


class ProjectOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    org_id = serializers.UUIDField(source="organization_id")
    name = serializers.CharField()
    slug = serializers.CharField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class NewProjectOutput(ProjectOutput):
    api_key = serializers.CharField()
